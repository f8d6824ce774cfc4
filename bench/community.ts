import { type Account, type Api, createRoom, join, mapConcurrently, openApi, register } from '../test/support/api.ts'
import type { Target } from './target.ts'

/** People and rooms that a benchmark works with, made through the public interface. */
export interface Community {
  readonly api: Api
  readonly people: readonly Account[]
  readonly roomIds: readonly string[]
}

export interface Plan {
  readonly people: number
  readonly rooms: number
  /** Who is in which room, besides the first person, who makes them all. */
  readonly isIn: (person: number, room: number) => boolean
}

const WIDTH = 8
let generation = 0

/** A prefix for names and transaction ids that is new also on a server that has seen earlier runs. */
export function newPrefix(): string {
  generation += 1
  return `b${Date.now().toString(36)}${generation}`
}

export async function registerPeople(api: Api, target: Target, count: number): Promise<Account[]> {
  const prefix = newPrefix()
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  return mapConcurrently(names, WIDTH, (name) => register(api, name, target.registrationToken))
}

export async function makeCommunity(target: Target, plan: Plan): Promise<Community> {
  const api = openApi(target.baseUrl)
  const people = await registerPeople(api, target, plan.people)
  const roomNumbers = Array.from({ length: plan.rooms }, (_, index) => index)
  const roomIds = await mapConcurrently(roomNumbers, WIDTH, (room) =>
    createRoom(api, people[0]!.token, { preset: 'public_chat', name: `Room ${room}` }),
  )
  const joins = roomIds.flatMap((roomId, room) =>
    people.filter((_, person) => person > 0 && plan.isIn(person, room)).map((person) => ({ roomId, person })),
  )
  await mapConcurrently(joins, WIDTH, ({ roomId, person }) => join(api, person.token, roomId))
  return { api, people, roomIds }
}
