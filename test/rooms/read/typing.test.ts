import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})

afterAll(() => house.close())

const type = (person: Person, body: object, where = room, whom = person) =>
  person.ask('PUT', inRoom(where, `/typing/${whom.userId}`), body)

/** Who types by an answer of sync; undefined when it does not say. */
const typists = ({ rooms }: Json): string[] | undefined =>
  rooms?.join?.[room]?.ephemeral?.events.find((event: Json) => event.type === 'm.typing')?.content.user_ids

/** Syncs until typing is spoken of, and gives who types and the token after that. */
function heard(person: Person, since: string): Promise<{ userIds: string[]; since: string }> {
  let token = since
  return waitUntil('news of typing', async () => {
    const answer = await person.call('GET', `/sync?timeout=5000&since=${token}`)
    token = answer.next_batch
    const userIds = typists(answer)
    return userIds && { userIds, since: token }
  })
}

describe('typing', () => {
  it('is told to the room as it begins and as it ends', async () => {
    const { next_batch } = await alice.sync()
    const hearing = heard(alice, next_batch)
    expect(await type(bob, { typing: true, timeout: 30_000 })).toEqual({ status: 200, body: {} })
    const began = await hearing
    expect(began.userIds).toEqual([bob.userId])
    expect(typists(await alice.sync())).toEqual([bob.userId])
    await type(bob, { typing: false })
    const ended = await heard(alice, began.since)
    expect(ended.userIds).toEqual([])
    expect(typists(await alice.sync(`&since=${ended.since}`))).toBeUndefined()
  })

  it('ends by itself when its time is over', async () => {
    const { next_batch } = await alice.sync()
    await type(bob, { typing: true, timeout: 50 })
    const first = await heard(alice, next_batch)
    const last = first.userIds.length === 0 ? first : await heard(alice, first.since)
    expect(last.userIds).toEqual([])
  })

  it('is not announced again when it goes on', async () => {
    await type(bob, { typing: true })
    const { next_batch } = await alice.sync()
    await type(bob, { typing: true })
    expect(typists(await alice.sync(`&since=${next_batch}`))).toBeUndefined()
    expect(typists(await alice.sync())).toEqual([bob.userId])
    await type(bob, { typing: false })
  })

  it('of several is told in the order in which they began', async () => {
    await type(bob, { typing: true })
    await type(alice, { typing: true })
    expect(typists(await alice.sync())).toEqual([bob.userId, alice.userId])
    await type(bob, { typing: false })
    expect(typists(await alice.sync())).toEqual([alice.userId])
    await type(alice, { typing: false })
  })

  it('ends when the room is left', async () => {
    const carol = await house.person('carol')
    await carol.join(room)
    await type(carol, { typing: true })
    expect(typists(await alice.sync())).toEqual([carol.userId])
    await carol.leave(room)
    expect(typists(await alice.sync()) ?? []).toEqual([])
  })

  it('is for oneself and in rooms one is in', async () => {
    expect((await type(alice, { typing: true }, room, bob)).status).toBe(403)
    const other = await alice.createRoom()
    expect(await type(bob, { typing: true }, other)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    expect((await type(bob, {})).body.errcode).toBe('M_MISSING_PARAM')
    expect((await type(bob, { typing: 'yes' })).body.errcode).toBe('M_BAD_JSON')
    expect((await type(bob, { typing: true, timeout: -1 })).body.errcode).toBe('M_INVALID_PARAM')
  })

  it('longer than anybody types is cut', async () => {
    await type(bob, { typing: true, timeout: Number.MAX_SAFE_INTEGER })
    expect(typists(await alice.sync())).toEqual([bob.userId])
    await type(bob, { typing: true, timeout: 0 })
    expect(typists(await alice.sync()) ?? []).toEqual([])
  })
})
