import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../people.ts'

describe('with next to no memory for rooms', () => {
  const LITTLE = 200_000
  let house: House
  let alice: Person
  let bob: Person

  beforeAll(async () => {
    house = await openHouse({ roomMemoryBytes: LITTLE })
    alice = await house.person('alice')
    bob = await house.person('bob')
  })
  afterAll(() => house.close())

  async function held(): Promise<number> {
    const parts = (await house.server.metrics()).matchAll(/^hearth_room_memory_bytes\{kind="\w+"\} (\d+)$/gm)
    return [...parts].reduce((sum, [, bytes]) => sum + Number(bytes), 0)
  }

  /** More than all that is held: whatever is not in use has to go. */
  async function pushOut(): Promise<void> {
    for (let index = 0; index < 12; index++) {
      const room = await alice.createRoom({ name: `Another ${index}`, topic: 'x'.repeat(10_000) })
      await alice.say(room, 'y'.repeat(10_000))
    }
  }

  test('A3: one budget holds whatever happens, and operators see it', async () => {
    await pushOut()
    const bytes = await held()
    expect(bytes).toBeGreaterThan(LITTLE / 10)
    expect(bytes).toBeLessThanOrEqual(LITTLE)
  })

  test('A3: a display name or a topic that changes again and again leaves nothing behind', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    for (let index = 0; index < 40; index++)
      await alice.setState(room, 'm.room.topic', { topic: `${index} `.repeat(4_000) })
    expect(await held()).toBeLessThanOrEqual(LITTLE)
    const { topic } = await alice.call('GET', inRoom(room, '/state/m.room.topic/'))
    expect(topic).toContain('39 39')
  })

  test('A3: a sync that waits in a room that went from memory is woken, and told what was said', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const { next_batch: since } = await bob.sync()
    const waiting = bob.call('GET', `/sync?timeout=30000&since=${since}`)
    await pushOut()
    await alice.say(room, 'still there?')
    const shown: Json = await waiting
    expect(textsOf(shown.rooms.join[room].timeline.events)).toEqual(['still there?'])
  })

  test('A3: state, memberships, history and unread counts are right when all was read again', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: 'First' })
    await bob.join(room)
    for (let index = 0; index < 30; index++) await alice.say(room, `number ${index}`)
    const { next_batch: since } = await bob.sync()
    await pushOut()
    await alice.setState(room, 'm.room.name', { name: 'Second' })
    await bob.leave(room)
    await pushOut()
    await bob.join(room)
    await alice.say(room, 'welcome back')
    const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=100'))
    expect(textsOf(chunk).toReversed()).toEqual([
      ...Array.from({ length: 30 }, (_, index) => `number ${index}`),
      'welcome back',
    ])
    const answer = (await bob.sync(`&since=${since}`)).rooms.join[room]
    const shown = [...answer.state.events, ...answer.timeline.events]
    expect(shown.findLast(({ type }: Json) => type === 'm.room.name').content.name).toBe('Second')
    expect(answer.unread_notifications.notification_count).toBe(1)
    expect((await alice.call('GET', inRoom(room, '/joined_members'))).joined).toHaveProperty([bob.userId])
  })

  test('A3: many who write into rooms that come and go lose nothing', async () => {
    const rooms = await Promise.all(Array.from({ length: 8 }, () => alice.createRoom({ preset: 'public_chat' })))
    await Promise.all([
      pushOut(),
      ...rooms.map((room) => Promise.all(Array.from({ length: 15 }, (_, n) => alice.say(room, `${n}`)))),
    ])
    for (const room of rooms) {
      const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=100'))
      expect(
        textsOf(chunk)
          .map(Number)
          .sort((a, b) => a - b),
      ).toEqual(Array.from({ length: 15 }, (_, n) => n))
    }
  })
})
