import { expect, it } from 'vitest'
import { JsonBytes } from '../../../src/core/json-bytes.ts'
import {
  alwaysJoined,
  type Bundles,
  delayedScope,
  type Reading,
  writeClientEvent,
} from '../../../src/domain/rooms/room/client-event.ts'
import { outlierRow, RoomEvent } from '../../../src/domain/rooms/room/room-event.ts'
import { openEvents, WrittenEvents } from '../../../src/domain/sync/first/written-events.ts'

const SENT = 1_700_000_000_000

function eventOf(number: number, body: string, txnToken: number | null = null): RoomEvent {
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
  return new RoomEvent({ ...row, txn_token: txnToken, txn_id: txnToken === null ? null : `txn-${number}` })
}

const readingAt = (now: number, more: Partial<Reading> = {}): Reading => ({
  now,
  tokenNid: undefined,
  membershipAt: alwaysJoined,
  ...more,
})

function anew(events: readonly RoomEvent[], reading: Reading): string {
  return events
    .map((event) => {
      const out = new JsonBytes()
      writeClientEvent(out, event, reading)
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
  const written = new WrittenEvents(openEvents(events, readingAt(SENT)), SENT)
  for (const age of ages) {
    const now = SENT + age
    for (let from = 0; from <= events.length; from++) {
      for (let to = from; to <= events.length; to++) {
        const out = new JsonBytes()
        written.write(out, readingAt(now), from, to)
        expect(out.toBuffer().toString()).toBe(anew(events.slice(from, to), readingAt(now)))
      }
    }
  }
})

const [PHONE, LAPTOP, SENDER] = [7, 8, 1]

it.each<[string, Partial<Reading>, readonly number[]]>([
  ['nobody in particular', {}, []],
  ['the client that sent some of them', { tokenNid: PHONE, userNid: SENDER }, []],
  ['one that did so with an earlier login', { tokenNid: 9, earlierTokens: [LAPTOP, PHONE], userNid: SENDER }, [2]],
  ['another user, with a part in a thread', { tokenNid: 9, userNid: 2 }, [2]],
])('writes for many readers what each would be written: %s', (_, reader, parts) => {
  const tokens = [PHONE, null, LAPTOP, delayedScope(SENDER), PHONE]
  const events = tokens.map((token, number) => eventOf(number, `text ${number}`, token))
  const [edit, latest] = [eventOf(10, 'edit', PHONE), eventOf(11, 'latest', LAPTOP)]
  const bundlesFor = (participated: boolean): Bundles =>
    new Map([
      [1, { edit, references: [] }],
      [2, { thread: { latest, bundle: { edit, references: [] }, replies: 3, participated }, references: [latest.id] }],
      [4, { edit, thread: { latest, bundle: undefined, replies: 1, participated: false }, references: [] }],
    ])
  const written = new WrittenEvents(openEvents(events, readingAt(SENT, { relations: bundlesFor(false) })), SENT)
  expect(written.threads).toEqual([2, 4])
  for (const age of [0, 9, 1_000, 5]) {
    const reading = readingAt(SENT + age, reader)
    const alone = { ...reading, relations: bundlesFor(parts.includes(2)) }
    for (let from = 0; from < events.length; from++) {
      const out = new JsonBytes()
      written.write(out, { ...reading, parts: new Set(parts) }, from)
      const text = out.toBuffer().toString()
      expect(text).toBe(anew(events.slice(from), alone))
      expect(JSON.parse(`[${text}]`)).toHaveLength(events.length - from)
    }
  }
})

it('leaves what was written before as it is', () => {
  const long = [eventOf(1, 'y'.repeat(40_000))]
  const written = new WrittenEvents(openEvents(long, readingAt(SENT)), SENT)
  const out = new JsonBytes()
  written.write(out, readingAt(SENT + 100))
  const before = anew(long, readingAt(SENT + 100))
  written.write(new JsonBytes(), readingAt(SENT + 200))
  expect(out.toBuffer().toString()).toBe(before)
})

it('counts its bytes', () => {
  const few = new WrittenEvents(openEvents([eventOf(1, 'a')], readingAt(SENT)), SENT)
  const more = new WrittenEvents(openEvents([eventOf(1, 'a'), eventOf(2, 'z'.repeat(1_000))], readingAt(SENT)), SENT)
  expect(more.bytes - few.bytes).toBeGreaterThan(1_000)
  expect(new WrittenEvents(openEvents([], readingAt(SENT)), SENT).length).toBe(0)
})
