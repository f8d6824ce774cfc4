import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildEvent, checkBuilt, type EventDraft } from '../../../src/core/event/build.ts'
import { ALLOWED, MAX_EVENT_BYTES, type Pdu } from '../../../src/core/event/format.ts'
import { redact } from '../../../src/core/event/redact.ts'
import { isSignedBy } from '../../../src/core/event/signers.ts'
import type { EventId } from '../../../src/core/ids.ts'
import { readJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, roomVersion } from '../../../src/core/room-version.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import {
  contentHash,
  createEventIdOf,
  eventIdOf,
  referenceHash,
  referenceTo,
  roomIdOfCreate,
  signEvent,
} from '../../../src/core/signing/event-hash.ts'
import { anyDraft, draftFor, KEY, KEYS, ORIGIN, referenceFor } from './drafts.ts'

const build = (id: string, different: Partial<EventDraft> = {}) => {
  const version = roomVersion(id)!
  return buildEvent(version, draftFor(version, different), ORIGIN, KEY)
}

describe.each(ROOM_VERSIONS)('room version $id', (version) => {
  test('a built event is what hashing, signing and writing it step by step would give', () => {
    fc.assert(
      fc.property(anyDraft(version), (draft) => {
        const built = buildEvent(version, draft, ORIGIN, KEY)
        const hashed: Pdu = { ...built.pdu, hashes: { sha256: contentHash(built.pdu) }, signatures: {} }
        expect(built.pdu).toEqual(signEvent(version, hashed, ORIGIN, KEY))
        expect(built.json).toBe(encodeCanonical(built.pdu))
        expect(readJson(built.json)).toEqual({ value: built.pdu, offence: undefined })
        expect(built.eventId).toBe(eventIdOf(version, built.pdu))
        expect(built.reference).toEqual(referenceTo(version, built.pdu))
        expect(checkBuilt(version, built)).toBe(ALLOWED)
        expect(isSignedBy(version, built.pdu, ORIGIN, KEYS)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  test('its id and signature survive redaction and anything unsigned; any other change breaks them', () => {
    fc.assert(
      fc.property(anyDraft(version), (draft) => {
        const { pdu, eventId } = buildEvent(version, draft, ORIGIN, KEY)
        const valid = (event: Pdu) => isSignedBy(version, event, ORIGIN, KEYS)
        for (const same of [
          redact(version, pdu),
          { ...pdu, unsigned: { age: 5 } },
          signEvent(version, pdu, 'b.org', KEY),
        ]) {
          expect(eventIdOf(version, same)).toBe(eventId)
          expect(referenceHash(version, same)).toEqual(referenceHash(version, pdu))
          expect(valid(same)).toBe(true)
        }
        expect(valid({ ...pdu, depth: Number(pdu.depth) + 1 })).toBe(false)
        expect(valid({ ...pdu, hashes: { sha256: contentHash({ ...pdu, content: { other: 1 } }) } })).toBe(false)
      }),
      { numRuns: 50 },
    )
  })
})

describe('what differs between versions', () => {
  test('ids: chosen, standard base64, URL-safe base64', () => {
    expect(build('2').eventId).toBe('$made:example.org')
    expect(build('2').pdu.event_id).toBe('$made:example.org')
    const ids = (id: string) => Array.from({ length: 40 }, (_, depth) => build(id, { depth }).eventId)
    for (const id of ids('3')) expect(id).toMatch(/^\$[A-Za-z0-9+/]{43}$/)
    for (const id of ids('4')) expect(id).toMatch(/^\$[A-Za-z0-9_-]{43}$/)
    expect(ids('3').join('')).toMatch(/[+/]/)
    expect(build('3').pdu).not.toHaveProperty('event_id')
  })

  test('references: with hashes, or ids alone', () => {
    expect(build('1').pdu.prev_events).toEqual([referenceFor(roomVersion('1')!, 1)])
    expect(build('1').reference).toEqual([
      '$made:example.org',
      { sha256: expect.stringMatching(/^[A-Za-z0-9+/]{43}$/) },
    ])
    expect(build('3', { prev_events: [['$x' as EventId, { sha256: 'y' }]] }).pdu.prev_events).toEqual(['$x'])
    expect(() => build('2', { prev_events: ['$x' as EventId] })).toThrow(TypeError)
    const { event_id, ...unnamed } = draftFor(roomVersion('1')!)
    expect(() => buildEvent(roomVersion('1')!, unnamed, ORIGIN, KEY)).toThrow(TypeError)
  })

  test('redactions name their target at the top, later in content', () => {
    const redaction = { type: 'm.room.redaction', content: { reason: 'spam' }, redacts: '$target' as EventId }
    expect(build('10', redaction).pdu).toMatchObject({ redacts: '$target', content: { reason: 'spam' } })
    expect(build('11', redaction).pdu).not.toHaveProperty('redacts')
    expect(build('11', redaction).pdu.content).toEqual({ reason: 'spam', redacts: '$target' })
  })

  test('events name their origin until redaction drops it', () => {
    expect(build('10').pdu.origin).toBe(ORIGIN)
    expect(build('11').pdu).not.toHaveProperty('origin')
  })

  test('the create event of version 12 names its room by its hash', () => {
    const version = roomVersion('12')!
    const { room_id, ...draft } = draftFor(version, {
      type: 'm.room.create',
      state_key: '',
      prev_events: [],
      auth_events: [],
    })
    const built = buildEvent(version, draft, ORIGIN, KEY)
    expect(built.pdu).not.toHaveProperty('room_id')
    expect(checkBuilt(version, built)).toBe(ALLOWED)
    const roomId = roomIdOfCreate(built.eventId)
    expect(roomId).toMatch(/^![A-Za-z0-9_-]{43}$/)
    expect(createEventIdOf(roomId)).toBe(built.eventId)
    expect(build('12', { room_id: roomId }).pdu.room_id).toBe(roomId)
  })

  test('depth stops where integers stop being exact', () => {
    expect(build('1', { depth: 2 ** 63 }).pdu.depth).toBe(2n ** 63n - 1n)
    expect(build('6', { depth: 2 ** 53 }).pdu.depth).toBe(Number.MAX_SAFE_INTEGER)
  })
})

test('our own events stay a byte under the published limit', () => {
  const version = roomVersion('12')!
  const sized = (body: string) => build('12', { content: { body } })
  const room = MAX_EVENT_BYTES - Buffer.byteLength(sized('').json)
  expect(checkBuilt(version, sized('x'.repeat(room)))).toBe(ALLOWED)
  expect(checkBuilt(version, sized('x'.repeat(room + 1)))).toMatchObject({ allowed: false, errcode: 'M_TOO_LARGE' })
  expect(checkBuilt(version, sized('ü'.repeat(room)))).toMatchObject({ allowed: false, errcode: 'M_TOO_LARGE' })
})
