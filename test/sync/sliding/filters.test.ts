import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { Connection, FORMS } from './connection.ts'

let house: House
let alice: Person
let bob: Person
let conn = 0
/** Rooms by what they are. */
const rooms: Record<string, string> = {}

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  const make = async (name: string, request: object = {}) => {
    rooms[name] = await alice.createRoom({ preset: 'public_chat', name, ...request })
  }
  const encrypted = { initial_state: [{ type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } }] }
  await make('plain')
  await make('encrypted', encrypted)
  await make('space', { creation_content: { type: 'm.space' } })
  await make('child')
  await make('tagged')
  await make('direct')
  for (const name of Object.keys(rooms)) await bob.join(rooms[name]!)
  await make('kicked', encrypted)
  await bob.join(rooms.kicked!)
  await alice.call('POST', `/rooms/${encodeURIComponent(rooms.kicked!)}/kick`, { user_id: bob.userId })
  await make('invitedEncrypted', encrypted)
  await make('invited')
  for (const name of ['invitedEncrypted', 'invited']) await alice.invite(rooms[name]!, bob)
  await alice.setState(rooms.space!, 'm.space.child', { via: ['localhost'] }, rooms.child)
  await alice.setState(rooms.space!, 'm.space.child', {}, rooms.plain)
  const own = `/user/${encodeURIComponent(bob.userId)}`
  await bob.call('PUT', `${own}/rooms/${encodeURIComponent(rooms.tagged!)}/tags/m.favourite`, {})
  await bob.call('PUT', `${own}/account_data/m.direct`, { [alice.userId]: [rooms.direct] })
})
afterAll(() => house.close())

const nameOf = (id: string): string => Object.entries(rooms).find(([, room]) => room === id)![0]

async function pass(form: 'merged' | 'unstable', filters: Json): Promise<string[]> {
  const answer = await new Connection(bob, form, `f${++conn}`).next({ lists: { all: { limit: 0, filters } } })
  const names = Object.keys(answer.rooms).map(nameOf).sort()
  expect(answer.lists.all.count).toBe(names.length)
  return names
}

const ALL = ['child', 'direct', 'encrypted', 'invited', 'invitedEncrypted', 'kicked', 'plain', 'space', 'tagged']
const without = (...names: string[]) => ALL.filter((name) => !names.includes(name))

describe.each(FORMS)('filters of the %s form', (form) => {
  it.each<[Json, string[]]>([
    [{}, ALL],
    [{ is_invited: true }, ['invited', 'invitedEncrypted']],
    [{ is_invited: false }, without('invited', 'invitedEncrypted')],
    [{ is_encrypted: true }, ['encrypted', 'invitedEncrypted', 'kicked']],
    [{ is_encrypted: false }, without('encrypted', 'invitedEncrypted', 'kicked')],
    [{ is_dm: true }, ['direct']],
    [{ is_dm: false }, without('direct')],
    [{ room_types: ['m.space'] }, ['space']],
    [{ room_types: [null] }, without('space')],
    [{ not_room_types: ['m.space'] }, without('space')],
    [{ room_types: ['m.space', null], not_room_types: ['m.space'] }, without('space')],
    [{ room_types: [] }, []],
    [{ tags: ['m.favourite', 'u.none'] }, ['tagged']],
    [{ not_tags: ['m.favourite'] }, without('tagged')],
    [{ tags: ['m.favourite'], not_tags: ['m.favourite'] }, []],
    [{ is_dm: true, is_encrypted: true }, []],
    [{ room_name_like: 'ENCR' }, ['encrypted', 'invitedEncrypted']],
  ])('32: %j', async (filters, names) => {
    expect(await pass(form, filters)).toEqual(names)
  })

  it('spaces: direct children of spaces that the user is in', async () => {
    expect(await pass(form, { spaces: [rooms.space, '!nowhere:localhost', 'x'] })).toEqual(['child'])
    expect(await pass(form, { spaces: [] })).toEqual([])
  })

  it('31: a filter that is left out widens the list again', async () => {
    const client = new Connection(bob, form, `f${++conn}`)
    const list = (filters: Json) => ({ lists: { all: { limit: 0, filters } } })
    expect((await client.next(list({ tags: ['m.favourite'] }))).lists.all.count).toBe(1)
    expect((await client.next(list({ not_tags: ['m.favourite'] }))).lists.all.count).toBe(ALL.length - 1)
    expect((await client.next(list({}))).lists.all.count).toBe(ALL.length)
  })

  it('knows the facts of rooms that are not in memory, and follows them when they change', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: `Before${form}` })
    await bob.join(room)
    rooms[`late${form}`] = room
    await house.restart()
    const client = new Connection(bob, form, `f${++conn}`)
    const list = {
      lists: {
        e: { limit: 0, filters: { is_encrypted: true } },
        n: { limit: 0, filters: { room_name_like: `after${form}` } },
      },
    }
    const before = await client.next(list)
    expect(before.lists).toMatchObject({ e: { count: 3 }, n: { count: 0 } })
    await alice.setState(room, 'm.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' })
    await alice.setState(room, 'm.room.name', { name: `After${form}` })
    const after = await client.next(list)
    expect(after.lists).toMatchObject({ e: { count: 4 }, n: { count: 1 } })
    await bob.leave(room)
    await bob.call('POST', `/rooms/${encodeURIComponent(room)}/forget`, {})
  })
})
