import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_PROFILE_FIELDS_ASKED, MAX_REMOVED_PROFILE_FIELDS } from '../../../src/domain/limits/sliding-sync.ts'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { Connection, FORMS, type Request } from './connection.ts'

let house: House
let alice: Person
let bob: Person
/** Shares no room with Bob. */
let stranger: Person
let room: string
let conn = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  stranger = await house.person('stranger')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  await stranger.createRoom({ preset: 'public_chat' })
})
afterAll(() => house.close())

const set = (person: Person, field: string, value: Json) =>
  person.call('PUT', `/profile/${encodeURIComponent(person.userId)}/${field}`, { [field]: value })
const remove = (person: Person, field: string) =>
  person.call('DELETE', `/profile/${encodeURIComponent(person.userId)}/${field}`)

const KEYS = { merged: 'org.matrix.msc4262.profiles', unstable: 'profiles' } as const

describe.each(FORMS)('profiles in the %s form', (form) => {
  const key = KEYS[form]
  const connect = (person = bob) => new Connection(person, form, `p${++conn}`)
  const asking = (more: Json = {}, request: Request = {}): Request => ({
    lists: { all: { range: [0, 9], limit: 5, lazy: true } },
    extensions: { [key]: { enabled: true, ...more } },
    ...request,
  })
  const usersOf = (answer: Json): Json => answer.extensions[key]?.users

  it('tells the own profile and those of people whom the first answer shows, then only what changes', async () => {
    await set(alice, 'org.example.mood', { is: `good ${form}` })
    await alice.say(room, 'here I am')
    const client = connect()
    const first = usersOf(await client.next(asking()))
    expect(first[alice.userId].updated).toMatchObject({ 'org.example.mood': { is: `good ${form}` } })
    expect(Object.keys(first)).not.toContain(stranger.userId)
    expect(usersOf(await client.next(asking()))).toBeUndefined()
    await alice.say(room, 'again')
    expect(usersOf(await client.next(asking()))).toBeUndefined()
    await set(stranger, 'org.example.mood', 'unseen')
    expect(usersOf(await client.next(asking()))).toBeUndefined()
    await set(bob, 'org.example.mood', 'mine')
    expect(usersOf(await client.next(asking()))).toEqual({ [bob.userId]: { updated: { 'org.example.mood': 'mine' } } })
    await remove(alice, 'org.example.mood')
    expect(usersOf(await client.next(asking()))).toEqual({ [alice.userId]: { removed: ['org.example.mood'] } })
  })

  it('wakes who shares a room, and repeats what a lost answer held', async () => {
    const client = connect()
    await client.next(asking())
    await client.next(asking())
    const waiting = client.ask(asking({}, { timeout: 30_000 }))
    await set(alice, 'org.example.call', { url: 'https://call.example/1' })
    const lost = usersOf((await waiting).body)
    expect(lost).toEqual({ [alice.userId]: { updated: { 'org.example.call': { url: 'https://call.example/1' } } } })
    expect(usersOf(await client.next(asking()))).toEqual(lost)
    expect(usersOf(await client.next(asking()))).toBeUndefined()
    await house.restart()
    await set(alice, 'org.example.call', 'after a restart')
    expect(usersOf(await client.next(asking()))).toEqual({
      [alice.userId]: { updated: { 'org.example.call': 'after a restart' } },
    })
  })

  it('keeps to the fields of the request, and tells those that it adds', async () => {
    await set(alice, 'org.example.one', 1)
    await set(alice, 'org.example.two', 2)
    await alice.say(room, 'with two fields')
    const client = connect()
    const one = { fields: ['org.example.one'] }
    expect(usersOf(await client.next(asking(one)))[alice.userId]).toEqual({ updated: { 'org.example.one': 1 } })
    await set(alice, 'org.example.two', 22)
    expect(usersOf(await client.next(asking(one)))).toBeUndefined()
    await set(alice, 'org.example.one', 11)
    expect(usersOf(await client.next(asking(one)))).toEqual({ [alice.userId]: { updated: { 'org.example.one': 11 } } })
    const both = { fields: ['org.example.two', 'org.example.one'] }
    expect(usersOf(await client.next(asking(both)))[alice.userId].updated).toEqual({
      'org.example.one': 11,
      'org.example.two': 22,
    })
  })

  it('tells all members of a room whose members do not come lazily, and nobody of rooms out of its scope', async () => {
    const silent = await house.person(`silent${form}`)
    await set(silent, 'org.example.quiet', true)
    // A room with a name is shown without those after whom it would be named.
    const named = await alice.createRoom({ preset: 'public_chat', name: 'Named' })
    for (const person of [bob, silent]) await person.join(named)
    await alice.say(named, 'one')
    await alice.say(named, 'two')
    const fields = { fields: ['org.example.quiet'] }
    const lazy = asking(fields, { lists: { all: { range: [0, 0], limit: 1, lazy: true } } })
    expect(usersOf(await connect().next(lazy))?.[silent.userId]).toBeUndefined()
    const whole = asking(fields, { lists: { all: { range: [0, 0], limit: 1 } } })
    expect(usersOf(await connect().next(whole))[silent.userId]).toEqual({
      updated: expect.objectContaining({ 'org.example.quiet': true }),
    })
    const scoped = usersOf(await connect().next({ ...whole, extensions: { [key]: { enabled: true, lists: [] } } }))
    expect(Object.keys(scoped ?? {})).not.toContain(silent.userId)
  })

  it('says who shares no room any more', async () => {
    const leaving = await house.person(`leaving${form}`)
    await leaving.join(room)
    const client = connect()
    await client.next(asking())
    await leaving.call('POST', `/rooms/${encodeURIComponent(room)}/leave`, {})
    expect(usersOf(await client.next(asking()))).toMatchObject({ [leaving.userId]: null })
    await set(leaving, 'org.example.mood', 'gone')
    expect(usersOf(await client.next(asking()))).toBeUndefined()
  })

  it('gives many large changes in answers of bounded size, all of them once', async () => {
    const crowd = await Promise.all([0, 1, 2, 3, 4, 5].map((index) => house.person(`large${index}${form}`)))
    for (const person of crowd) await person.join(room)
    const client = connect()
    await client.next(asking())
    await client.next(asking())
    for (const person of crowd) await set(person, 'org.example.large', 'x'.repeat(60_000))
    const seen: string[] = []
    let largest = 0
    for (let round = 0; round < 4; round++) {
      // A full answer is followed at once by the next.
      const answer = await client.next(asking({}, { timeout: round === 0 ? 20_000 : 0 }))
      largest = Math.max(largest, JSON.stringify(answer).length)
      seen.push(...Object.keys(usersOf(answer) ?? {}))
    }
    expect(seen.sort()).toEqual(crowd.map(({ userId }) => userId).sort())
    expect(largest).toBeLessThan(400_000)
  })

  it('refuses fields that are no list of texts, or too many', async () => {
    const many = Array.from({ length: MAX_PROFILE_FIELDS_ASKED + 1 }, (_, index) => `f${index}`)
    for (const fields of ['displayname', [1], many]) {
      const { status, body } = await connect().ask(asking({ fields }))
      expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    }
  })
})

it('remembers so many removed fields of a user, the newest', async () => {
  const eve = await house.person('eve')
  const fields = Array.from({ length: MAX_REMOVED_PROFILE_FIELDS + 5 }, (_, index) => `org.example.f${index}`)
  const path = `/profile/${encodeURIComponent(eve.userId)}`
  await eve.call('PATCH', path, Object.fromEntries(fields.map((field) => [field, 1])))
  for (const field of fields) await remove(eve, field)
  // A name that was never set is not kept.
  await eve.call('PATCH', path, { 'org.example.never': null })
  const rows = await house.server.database.db.query<{ name: string }>(
    'SELECT name FROM profile_change JOIN matrix_user USING (user_nid) WHERE user_id = $1 ORDER BY position',
    [eve.userId],
  )
  expect(rows.map(({ name }) => name)).toEqual(fields.slice(5))
})
