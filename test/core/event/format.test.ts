import { describe, expect, test } from 'vitest'
import { buildEvent } from '../../../src/core/event/build.ts'
import { ALLOWED, checkFormat, MAX_RECEIVED_EVENT_BYTES, referencedId } from '../../../src/core/event/format.ts'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { draftFor, KEY, ORIGIN, referenceFor } from './drafts.ts'

const builtFor = (version: RoomVersion) => buildEvent(version, draftFor(version), ORIGIN, KEY).pdu

function check(id: string, different: { [key: string]: JsonValue | undefined }) {
  const version = roomVersion(id)!
  const pdu = { ...builtFor(version), ...different }
  const present = Object.fromEntries(Object.entries(pdu).filter(([, value]) => value !== undefined)) as JsonObject
  return checkFormat(version, present)
}

const REQUIRED = ['type', 'sender', 'room_id', 'content', 'origin_server_ts', 'depth', 'prev_events', 'auth_events']

describe.each(ROOM_VERSIONS)('room version $id', (version) => {
  test.each([...REQUIRED, 'hashes', 'signatures'])('%s is required and typed', (key) => {
    expect(check(version.id, {})).toBe(ALLOWED)
    for (const wrong of [undefined, null, 'text', 1.5, [1], [[]], { a: 1 }]) {
      if (key === 'type' && wrong === 'text') continue
      if (key === 'content' && wrong instanceof Object && !Array.isArray(wrong)) continue
      expect(check(version.id, { [key]: wrong })).toMatchObject({ allowed: false, errcode: 'M_BAD_JSON' })
    }
  })

  test('as many references as the published limits and no more (server-server API, "PDUs")', () => {
    const references = (count: number) =>
      Array.from({ length: count }, (_, number) => referenceFor(version, number % 10))
    expect(check(version.id, { prev_events: references(20), auth_events: references(10) })).toBe(ALLOWED)
    expect(check(version.id, { prev_events: references(21) })).toMatchObject({ allowed: false })
    expect(check(version.id, { auth_events: references(11) })).toMatchObject({ allowed: false })
    expect(references(3).map(referencedId)).toHaveLength(3)
  })

  test('identifiers, types and state keys are limited in bytes (client-server API, "Size limits")', () => {
    for (const field of ['type', 'state_key']) {
      expect(check(version.id, { [field]: 'é'.repeat(127) })).toBe(ALLOWED)
      expect(check(version.id, { [field]: 'é'.repeat(128) })).toMatchObject({ allowed: false, errcode: 'M_TOO_LARGE' })
      expect(check(version.id, { [field]: 'a\0b' })).toMatchObject({ allowed: false, errcode: 'M_BAD_JSON' })
    }
    expect(check(version.id, { sender: `@${'a'.repeat(242)}:example.org` })).toBe(ALLOWED)
    expect(check(version.id, { sender: `@${'a'.repeat(243)}:example.org` })).toMatchObject({ errcode: 'M_TOO_LARGE' })
  })

  test('the whole event is limited in bytes', () => {
    const pdu: JsonObject = builtFor(version)
    const room = MAX_RECEIVED_EVENT_BYTES - Buffer.byteLength(encodeCanonical({ ...pdu, content: { body: '' } }))
    expect(check(version.id, { content: { body: 'x'.repeat(room) } })).toBe(ALLOWED)
    expect(check(version.id, { content: { body: 'x'.repeat(room + 1) } })).toMatchObject({ errcode: 'M_TOO_LARGE' })
  })
})

test('depth counts as far as doubles do', () => {
  for (const id of ['1', '5', '6', '12']) {
    expect(check(id, { depth: 0 })).toBe(ALLOWED)
    expect(check(id, { depth: Number.MAX_SAFE_INTEGER })).toBe(ALLOWED)
    expect(check(id, { depth: -1 })).toMatchObject({ allowed: false })
    expect(check(id, { depth: 2 ** 53 })).toMatchObject({ allowed: false })
    expect(check(id, { depth: 2 ** 63 })).toMatchObject({ allowed: false })
  }
})

test('references have the shape of their version', () => {
  expect(check('2', { prev_events: ['$a:b'] })).toMatchObject({ allowed: false })
  expect(check('3', { prev_events: [['$a', { sha256: 'x' }]] })).toMatchObject({ allowed: false })
  expect(check('3', { prev_events: ['a'] })).toMatchObject({ allowed: false })
})

test('an event id is there in versions 1 and 2, with a server', () => {
  for (const id of ['1', '2']) {
    expect(check(id, { event_id: undefined })).toMatchObject({ allowed: false })
    for (const odd of ['$hash', '$a:', '$a:b c', `$${'a'.repeat(255)}:b`, 5]) {
      expect(check(id, { event_id: odd })).toMatchObject({ allowed: false })
    }
  }
  for (const other of [undefined, 5, 'x'.repeat(300)]) expect(check('3', { event_id: other })).toBe(ALLOWED)
})

test('a room id is a hash in version 12, and absent from the create event alone', () => {
  expect(check('12', { room_id: '!room:example.org' })).toMatchObject({ allowed: false })
  expect(check('11', { type: 'm.room.create', room_id: undefined })).toMatchObject({ allowed: false })
  expect(check('12', { type: 'm.room.create', room_id: undefined })).toBe(ALLOWED)
})

test('what a redaction is for is an id where it stands at the top', () => {
  expect(check('10', { type: 'm.room.redaction', redacts: 5 })).toMatchObject({ allowed: false })
  expect(check('10', { type: 'm.room.message', redacts: 5 })).toBe(ALLOWED)
  expect(check('11', { type: 'm.room.redaction', redacts: 5 })).toBe(ALLOWED)
})

test.each([
  { unsigned: 5 },
  { state_key: 5 },
  { signatures: { a: { b: 1 } } },
  { signatures: { a: [] } },
  { hashes: { md5: 'x' } },
])('%j is refused', (different) => {
  expect(check('12', different as unknown as JsonObject)).toMatchObject({ allowed: false })
})
