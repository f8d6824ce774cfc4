import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'

const NAMES = ['anna', 'ben', 'cleo', 'dirk']
const ROOMS = 12
const TEXTS = 10
const ROUNDS = 4

let house: House
let people: Person[]

beforeAll(async () => {
  house = await openHouse()
  people = await Promise.all(NAMES.map((name) => house.person(name)))
  const [anna, ...others] = people as [Person, ...Person[]]
  for (let index = 0; index < ROOMS; index++) {
    const room = await anna.createRoom({ preset: 'public_chat', name: `Room ${index}` })
    for (const person of others) await person.join(room)
    for (let count = 0; count < TEXTS; count++) {
      await people[(index + count) % people.length]!.say(room, `${index} ${count} `.repeat(2_000))
    }
  }
})
afterAll(() => house.close())

const filter = encodeURIComponent(JSON.stringify({ room: { state: { lazy_load_members: true } } }))

function begin({ token }: Person): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    httpRequest(`${house.api.baseUrl}/_matrix/client/v3/sync?filter=${filter}`, { headers, agent: false }, resolve)
      .on('error', reject)
      .end()
  })
}

const shownTo = async (person: Person): Promise<Json> => shownIn(await begin(person))

/** What a first sync shows of rooms. State has no order, and ages pass. */
async function shownIn(answer: IncomingMessage): Promise<Json> {
  let text = ''
  for await (const chunk of answer) text += chunk
  const { join } = JSON.parse(text).rooms
  for (const { state } of Object.values<Json>(join))
    state.events.sort((a: Json, b: Json) => (a.event_id < b.event_id ? -1 : 1))
  return JSON.parse(JSON.stringify(join, (name, value) => (name === 'age' ? 0 : value)))
}

/** A client that goes away in the middle of its answer. */
async function leaveEarly(person: Person): Promise<void> {
  const answer = await begin(person)
  await once(answer, 'data')
  answer.destroy()
}

it('large answers that are made at once, or read slowly, or not to the end, do not mix', async () => {
  const alone: Json[] = []
  for (const person of people) alone.push(await shownTo(person))
  expect(JSON.stringify(alone[0]).length).toBeGreaterThan(1 << 20)
  for (let round = 0; round < ROUNDS; round++) {
    const leaving = people.map(leaveEarly)
    const slow = await begin(people[round]!)
    expect(await Promise.all(people.map(shownTo))).toEqual(alone)
    await Promise.all(leaving)
    expect(await shownIn(slow)).toEqual(alone[round])
  }
})
