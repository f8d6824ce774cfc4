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
import {
  openEvents,
  type Written,
  WrittenEvents,
  type WrittenFor,
} from '../../../src/domain/sync/first/written-events.ts'

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

function textOf(written: Written, reader: WrittenFor): string {
  const out = new JsonBytes()
  written.write(out, reader)
  return out.toBuffer().toString()
}

const TEXTS = ['plain', 'häßlich', '"age":12', '😀', 'x'.repeat(9_000), '']

it.each([
  ['later', [0, 1, 3, 9, 10, 11, 99, 100, 1_000, 12_345_678]],
  ['earlier, as after a change of the clock', [12_345_678, 5, 0, -1_000, 40]],
])('writes what would be written anew: %s', (_, ages) => {
  const events = TEXTS.map((text, number) => eventOf(number, text))
  const writtenAt = (now: number, some: readonly RoomEvent[]) =>
    new WrittenEvents(openEvents(some, readingAt(now)), now)
  for (let at = 0; at <= events.length; at++) {
    const [before, after] = [events.slice(0, at), events.slice(at)]
    const alone = writtenAt(SENT, before)
    // Its parts were written at different times.
    const joined = WrittenEvents.joined(['[', writtenAt(SENT, before), '|ü|', writtenAt(SENT + 7, after)], SENT + 3)
    for (const age of ages) {
      const reading = readingAt(SENT + age)
      const [first, second] = [anew(before, reading), anew(after, reading)]
      expect(textOf(alone, reading)).toBe(first)
      expect(textOf(joined, reading)).toBe(`[${first}|ü|${second}`)
      expect(joined.jsonBytes).toBe(Buffer.byteLength(`[${first}|ü|${second}`))
      const parts = [joined.part(1), joined.part(3)]
      expect(parts.map((part) => textOf(part, reading))).toEqual([first, second])
      expect(parts.map(({ jsonBytes }) => jsonBytes)).toEqual([first, second].map((text) => Buffer.byteLength(text)))
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
  const writtenFor = () =>
    new WrittenEvents(openEvents(events, readingAt(SENT, { relations: bundlesFor(false) })), SENT)
  const written = writtenFor()
  expect(written.threads).toEqual([2, 4])
  for (const age of [0, 9, 1_000, 5]) {
    const reading = readingAt(SENT + age, reader)
    const alone = { ...reading, relations: bundlesFor(parts.includes(2)) }
    const toRead = { ...reading, parts: new Set(parts) }
    const text = anew(events, alone)
    expect(textOf(written, toRead)).toBe(text)
    expect(JSON.parse(`[${text}]`)).toHaveLength(events.length)
    // Both have places for the same readers.
    const joined = WrittenEvents.joined([written, '\n', writtenFor()], SENT)
    expect(textOf(joined, toRead)).toBe(`${text}\n${text}`)
    expect(textOf(joined.part(0), toRead)).toBe(text)
    expect(textOf(joined.part(2), toRead)).toBe(text)
  }
})

it('writes ages of a moment ago for who does not mind', () => {
  const events = [eventOf(1, 'a')]
  const written = new WrittenEvents(openEvents(events, readingAt(SENT)), SENT + 50)
  const agesAt = (now: number, agesFor: number) =>
    JSON.parse(textOf(written, { ...readingAt(now), agesFor })).unsigned.age
  const age = 43
  expect(agesAt(SENT + 50 + 100, 100)).toBe(age)
  expect(agesAt(SENT + 50 + 101, 100)).toBe(age + 101)
  expect(agesAt(SENT + 50 + 101 + 100, 100)).toBe(age + 101)
  expect(agesAt(SENT + 50, 100)).toBe(age)
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
})
