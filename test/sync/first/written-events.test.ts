import { expect, it } from 'vitest'
import { JsonBytes } from '../../../src/core/json-bytes.ts'
import { alwaysJoined, writeClientEvent } from '../../../src/domain/rooms/room/client-event.ts'
import { outlierRow, RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import { WrittenEvents } from '../../../src/domain/sync/first/written-events.ts'

const SENT = 1_700_000_000_000

function eventOf(number: number, body: string): RoomEvent {
  const ts = SENT + 7 * number
  const pdu = { content: { body }, origin_server_ts: ts, sender: '@a:example.org', type: 'm.room.message' }
  const row = outlierRow({
    event_nid: number + 1,
    room_nid: 1,
    sender_nid: 1,
    event_id: `$${number}` as never,
    type: 'm.room.message',
    origin_server_ts: ts,
    key_id: null,
    standing: null,
    reason: null,
    auth_nids: null,
    json: JSON.stringify(pdu),
  })
  return new RoomEvent(row)
}

const readingAt = (now: number) => ({ now, tokenNid: undefined, membershipAt: alwaysJoined })

function anew(events: readonly RoomEvent[], now: number): string {
  return events
    .map((event) => {
      const out = new JsonBytes()
      writeClientEvent(out, event, readingAt(now))
      return out.toBuffer().toString()
    })
    .join(',')
}

const TEXTS = ['plain', 'häßlich', '"age":12', '😀', 'x'.repeat(9_000), '']

it.each([
  ['later', [0, 1, 3, 9, 10, 11, 99, 100, 1_000, 12_345_678]],
  ['earlier, as after a change of the clock', [12_345_678, 5, 0, -1_000, 40]],
])('writes what would be written anew: %s', (_, ages) => {
  const events = TEXTS.map((text, number) => eventOf(number, text))
  const written = new WrittenEvents(events, readingAt(SENT))
  for (const age of ages) {
    const now = SENT + age
    for (let from = 0; from <= events.length; from++) {
      for (let to = from; to <= events.length; to++) {
        const out = new JsonBytes()
        written.write(out, now, from, to)
        expect(out.toBuffer().toString()).toBe(anew(events.slice(from, to), now))
      }
    }
  }
})

it('leaves what was written before as it is', () => {
  const long = [eventOf(1, 'y'.repeat(40_000))]
  const written = new WrittenEvents(long, readingAt(SENT))
  const out = new JsonBytes()
  written.write(out, SENT + 100)
  const before = anew(long, SENT + 100)
  written.write(new JsonBytes(), SENT + 200)
  expect(out.toBuffer().toString()).toBe(before)
})

it('counts its bytes', () => {
  const few = new WrittenEvents([eventOf(1, 'a')], readingAt(SENT))
  const more = new WrittenEvents([eventOf(1, 'a'), eventOf(2, 'z'.repeat(1_000))], readingAt(SENT))
  expect(more.bytes - few.bytes).toBeGreaterThan(1_000)
  expect(new WrittenEvents([], readingAt(SENT)).length).toBe(0)
})
