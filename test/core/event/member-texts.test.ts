import { expect, test } from 'vitest'
import { contentPlace, memberTexts } from '../../../src/core/event/member-texts.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { seededRandom } from '../../store/events/forked-room.ts'

const base = {
  auth_events: ['$a', '$b'],
  content: { body: 'hello' },
  depth: 3,
  hashes: { sha256: 'x' },
  origin_server_ts: 1_764_000_000_000,
  prev_events: [],
  room_id: '!a:b',
  sender: '@a:b',
  signatures: { b: { 'ed25519:1': 'y' } },
  type: 'm.room.message',
}

test('finds the members of an event, and nothing inside them', () => {
  const content = { sender: '@other:b', content: { '"sender":"': ['}', '"', '\\', '\\"', ']'] }, state_key: 'x' }
  const json = encodeCanonical({ ...base, content })
  expect(memberTexts(json)).toEqual({
    content: encodeCanonical(content),
    sender: '"@a:b"',
    originServerTs: '1764000000000',
    stateKey: undefined,
    isPlain: true,
  })
  expect(memberTexts(encodeCanonical({ ...base, state_key: 'a"\\' }))?.stateKey).toBe(JSON.stringify('a"\\'))
  expect(memberTexts(encodeCanonical({ ...base, 'org.other': [{ a: [] }], zzz: null }))?.isPlain).toBe(true)
})

const USUAL: readonly object[] = [
  {},
  { state_key: '' },
  { state_key: '@a:b', content: { membership: 'join', displayname: 'a"\\}' } },
  { state_key: 'a"' },
  { auth_events: [], prev_events: ['$a'] },
  { auth_events: [['$a:b', { sha256: 'x' }]], prev_events: [['$a:b', { sha256: 'x' }]] },
  { auth_events: ['"],"content":{"body":"forged"},"depth":1'] },
  { content: {} },
  { content: { a: '},"depth":1,"hashes":{"sha256":"x"},"origin_server_ts":1' } },
  { content: { b: { depth: 1, hashes: { sha256: 'x' }, sender: '@victim:b' } } },
  { origin: 'b' },
  { room_id: undefined },
  { depth: -1 },
  { origin_server_ts: -1 },
  { hashes: { sha256: 'x', sha1: 'y' } },
  { hashes: { sha256: 'x"},"origin_server_ts":1,"sender":"@victim:b"' } },
  { signatures: {} },
  { signatures: { a: { 'ed25519:1': 'x' }, b: { 'ed25519:1': 'y', 'ed25519:2': 'z' } } },
  { signatures: { b: { 'ed25519:1': { sender: '@victim:b' } } } },
  { unsigned: { age: 5 } },
  { prev_state: [], sender: '@"a:b' },
  { type: 'with "quotes"' },
  { zzz: { type: 'm.other', sender: '@victim:b' } },
]

test.each(USUAL)('is what the parser finds: %j', (members) => {
  const event = JSON.parse(JSON.stringify({ ...base, ...members }))
  const { content, sender, originServerTs, stateKey, isPlain } = memberTexts(encodeCanonical(event))!
  expect(JSON.parse(content)).toEqual(event.content)
  expect([JSON.parse(sender), JSON.parse(originServerTs)]).toEqual([event.sender, event.origin_server_ts])
  expect(stateKey === undefined ? undefined : JSON.parse(stateKey)).toBe(event.state_key)
  expect(isPlain).toBe(true)
})

test('a redaction and a sticky event are not plain', () => {
  expect(memberTexts(encodeCanonical({ ...base, redacts: '$a' }))?.isPlain).toBe(false)
  expect(memberTexts(encodeCanonical({ ...base, msc4354_sticky: { duration_ms: 1 } }))?.isPlain).toBe(false)
})

test('keeps large integers as they are', () => {
  const json = '{"content":{"n":9223372036854775807},"origin_server_ts":9007199254740993,"sender":"@a:b"}'
  expect(memberTexts(json)).toMatchObject({ content: '{"n":9223372036854775807}', originServerTs: '9007199254740993' })
})

test('leaves what is not canonical, or lacks a member, to the parser', () => {
  const whole = encodeCanonical(base)
  expect(memberTexts('{}')).toBeUndefined()
  expect(memberTexts(JSON.stringify(base, null, 1))).toBeUndefined()
  expect(memberTexts(whole.replace('"sender":"@a:b",', ''))).toBeUndefined()
  for (let length = 0; length < whole.length; length++) expect(memberTexts(whole.slice(0, length))).toBeUndefined()
})

test('no name passes what it holds off as other members', () => {
  // Read from the escaped quote of the last name on, its value holds a sender.
  const forged = { ...base, 'x":': { ',': ':w', sender: '@victim:b', 'x":': { ',': ':{' } }, 'z},': ':w' }
  const found = memberTexts(encodeCanonical(forged))
  expect(found === undefined || JSON.parse(found.sender)).not.toBe('@victim:b')
})

test('no list passes what it holds, or what comes after it, off as other members', () => {
  // A list that does not end with a string, and a text that begins like the end of a list: whoever takes the one for the end of the other
  // reads texts as members from there on, and members as texts.
  const inner = { ':[': ['"'], content: {}, origin_server_ts: 1, sender: '@victim:b', w: ['x', 1] }
  const forged = { ...base, '1': ['x', 1], '2': '],', ':1,': inner, ':2': '],', ':[': 'q', zz: ['"'] }
  expect(memberTexts(encodeCanonical(forged))).toMatchObject({ sender: '"@a:b"', originServerTs: '1764000000000' })
})

test('agrees with the parser for random events', () => {
  const below = seededRandom(7)
  const pick = <T>(from: readonly T[]): T => from[below(from.length)]!
  const letters = ['"', '\\', '{', '}', '[', ']', ',', ':', 'a', 'ä', '😀', '\n', '\u0000', '\u2028', '/']
  const text = (): string => Array.from({ length: below(8) }, () => pick(letters)).join('')
  const value = (depth: number): unknown => {
    const kind = below(depth > 3 ? 4 : 6)
    if (kind === 0) return text()
    if (kind === 1) return below(1_000_000) - 5e5
    if (kind === 2) return pick([true, false, null])
    if (kind === 3) return pick([{}, []])
    const many = Array.from({ length: below(4) }, () => value(depth + 1))
    return kind === 4 ? many : Object.fromEntries(many.map((each) => [text(), each]))
  }
  let skipped = 0
  for (let round = 0; round < 1_000; round++) {
    const event = { ...base, content: { [text()]: value(0), a: value(0) }, sender: `@${text()}:b`, state_key: text() }
    const others = { [text()]: value(0), [text()]: value(0), unsigned: value(0) }
    const found = memberTexts(encodeCanonical({ ...others, ...event } as never))
    if (found === undefined) skipped++
    else {
      expect(JSON.parse(found.content)).toEqual(event.content)
      expect(JSON.parse(found.sender)).toBe(event.sender)
      expect(JSON.parse(found.stateKey!)).toBe(event.state_key)
    }
  }
  // Names that hold a quote are left to the parser.
  expect(skipped).toBeLessThan(500)
})

test('finds the end of a list of strings, whatever these hold', () => {
  const lists = [
    ['$a', ']b', '"]', ',"]'],
    [']'],
    ['a,', ' ]'],
    ['[', 'x'],
    ['\\'],
    ['a\\"]', '{'],
    ['', ']', ''],
    ['a', ['b"]'], 'c'],
    ['a', { b: ['"]'] }, ']'],
    [],
  ]
  for (const list of lists) {
    const json = encodeCanonical({ ...base, auth_events: list, prev_events: list } as never)
    expect(memberTexts(json)).toEqual(memberTexts(encodeCanonical(base)))
  }
})

/** What the database takes out of a text by the place of its content. */
function cut(json: string, ts: number): string | undefined {
  const place = contentPlace(json, ts)
  if (place === null) return undefined
  const begin = Math.floor(place / 65_536)
  return Buffer.from(json)
    .subarray(begin - 1, begin - 1 + (place % 65_536))
    .toString()
}

test('says where the content of a usual event stands, in bytes', () => {
  const TS = base.origin_server_ts
  for (const content of [
    {},
    { body: 'Grüße 😀', content: { depth: 1 } },
    { a: '},"depth":1,"hashes":{"sha256":"x"}' },
  ]) {
    for (const more of [{}, { state_key: '' }, { auth_events: ['$ä'] }, { state_key: '@a:b', origin: 'b' }])
      expect(cut(encodeCanonical({ ...base, ...more, content }), TS)).toBe(encodeCanonical(content))
  }
})

test('says nothing of others', () => {
  const TS = base.origin_server_ts
  const others = [
    { redacts: '$a' },
    { msc4354_sticky: { duration_ms: 1 } },
    { zzz: 1 },
    { event_id: '$a:b' },
    { sender: '@"a:b' },
    { state_key: 'a"' },
    { type: 'with "quotes"' },
    { signatures: { a: { 'ed25519:1': 'x' }, b: { 'ed25519:1': 'y' } } },
    { auth_events: Array.from({ length: 2_000 }, (_, index) => `$event-number-${index}`) },
    { content: { body: 'x'.repeat(70_000) } },
  ]
  for (const more of others) expect(contentPlace(encodeCanonical({ ...base, ...more }), TS)).toBeNull()
  expect(contentPlace(encodeCanonical(base), TS + 1)).toBeNull()
  expect(contentPlace('{}', TS)).toBeNull()
})
