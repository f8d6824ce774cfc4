import { afterAll, beforeAll, expect, it } from 'vitest'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { DEFAULT_PUSH_RULES } from '../../../src/core/push/compiled-rules.ts'
import type { RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import type { UnreadNews } from '../../../src/domain/rooms/write/unread-news.ts'
import { createUnread } from '../../../src/domain/sync/unread.ts'
import { type House, inRoom, openHouse } from '../../rooms/people.ts'

let house: House

beforeAll(async () => {
  house = await openHouse()
})

afterAll(() => house.close())

it('counts an event once that was read from the database before this process heard of its commit', async () => {
  const [alice, bob] = [await house.person('alice'), await house.person('bob')]
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const mention = { msgtype: 'm.text', body: 'Bob?', 'm.mentions': { user_ids: [bob.userId] } }
  const { event_id } = await alice.call('PUT', inRoom(room, '/send/m.room.message/one'), mention)
  const { db } = house.server.database
  const nidOf = async (userId: string) =>
    (await db.query<{ nid: number }>('SELECT user_nid AS nid FROM matrix_user WHERE user_id = $1', [userId]))[0]!.nid
  const bobNid = await nidOf(bob.userId)
  const [sent] = await db.query<{ event_nid: number; room_nid: number; room_pos: number; notifiable: number }>(
    'SELECT event_nid, room_nid, room_pos, notifiable FROM event WHERE event_id = $1',
    [event_id],
  )
  const { event_nid: eventNid, room_nid: roomNid, room_pos: pos, notifiable } = sent!
  // The unread counts of a process that has not heard of the message yet.
  const unread = createUnread({
    db,
    budget: new ByteBudget(1_000_000),
    pushRules: { of: () => DEFAULT_PUSH_RULES, changedAt: () => 0 },
    ignoredUsers: { of: async () => undefined, onChange: () => {} },
  })
  const counted = { notification_count: 1, highlight_count: 1 }
  expect((await unread.count(bobNid, roomNid, notifiable)).main).toEqual(counted)
  const senderNid = await nidOf(alice.userId)
  const event = { roomNid, pos, senderNid, type: 'm.room.message', pdu: {} } as RoomEvent
  const noticed = { userNid: bobNid, notifies: true, highlights: true }
  const news: UnreadNews = { eventNid, pos, senderNid, rootId: '', counts: true, noticed: [noticed], deaf: new Set() }
  unread.appended(event, news)
  expect((await unread.count(bobNid, roomNid, notifiable)).main).toEqual(counted)
  // One more counts.
  const next = { ...news, eventNid: eventNid + 1, pos: pos + 1 }
  unread.appended({ ...event, pos: pos + 1 } as RoomEvent, next)
  expect((await unread.count(bobNid, roomNid, notifiable + 1)).main).toEqual({
    notification_count: 2,
    highlight_count: 2,
  })
})
