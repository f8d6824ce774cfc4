import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildEvent } from '../../../src/core/event/build.ts'
import { MAX_RECEIVED_EVENT_BYTES, type Pdu } from '../../../src/core/event/format.ts'
import { type ReadPdu, readPdu } from '../../../src/core/event/read.ts'
import { redact } from '../../../src/core/event/redact.ts'
import { type JsonObject, type JsonValue, readJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { encodeCanonical } from '../../../src/core/signing/canonical-json.ts'
import { contentHash, eventIdOf, signEvent, signedEventText } from '../../../src/core/signing/event-hash.ts'
import { anyDraft, draftFor, KEY, ORIGIN } from './drafts.ts'

function read(version: RoomVersion, raw: JsonValue): ReadPdu {
  const answer = readPdu(version, raw)
  if ('allowed' in answer) throw new Error(answer.reason)
  return answer
}

/** Hashed and signed anew after a change. */
function remade(version: RoomVersion, pdu: JsonObject): Pdu {
  const hashed = { ...pdu, hashes: { sha256: contentHash(pdu) }, signatures: {} } as unknown as Pdu
  return signEvent(version, hashed, ORIGIN, KEY)
}

describe.each(ROOM_VERSIONS)('room version $id', (version) => {
  const built = buildEvent(version, draftFor(version, { unsigned: { age: 3 } }), ORIGIN, KEY)
  const { unsigned, ...withoutUnsigned } = built.pdu

  test('what we build is read as it was made, without `unsigned`', () => {
    fc.assert(
      fc.property(anyDraft(version), (draft) => {
        const { pdu, eventId, json } = buildEvent(version, draft, ORIGIN, KEY)
        const { unsigned, ...rest } = pdu
        expect(readPdu(version, readJson(json).value)).toEqual({
          pdu: rest,
          eventId,
          json: encodeCanonical(rest),
          signedText: signedEventText(version, pdu),
          isRedacted: false,
        })
      }),
      { numRuns: 50 },
    )
  })

  test('content that is not what was hashed leaves the redacted copy', () => {
    const forged = { ...built.pdu, content: { body: 'forged' } }
    expect(read(version, forged)).toEqual({
      pdu: redact(version, withoutUnsigned as Pdu),
      eventId: eventIdOf(version, built.pdu),
      json: encodeCanonical(redact(version, withoutUnsigned as Pdu)),
      signedText: signedEventText(version, built.pdu),
      isRedacted: true,
    })
    for (const sha256 of ['', 'no base64!', 'AAAA', built.pdu.hashes.sha256.slice(0, -1)]) {
      expect(read(version, { ...built.pdu, hashes: { sha256 } }).isRedacted).toBe(true)
    }
    expect(read(version, read(version, forged).pdu).eventId).toBe(built.eventId)
  })

  test("`age_ts` and `unsigned` are nobody's word: neither is kept, and neither spoils the hash", () => {
    const { pdu } = read(version, { ...built.pdu, age_ts: 5, unsigned: { redacted_because: {} } })
    expect(pdu).toEqual(withoutUnsigned)
  })

  test('unknown keys are hashed, `event_id` among them where ids are hashes', () => {
    const odd = remade(version, {
      ...withoutUnsigned,
      'x.unknown': [1],
      ['__proto__']: { a: 1 },
      '\u{10000}': 1,
      '\uffff': 2,
    })
    expect(read(version, odd)).toMatchObject({ pdu: odd, isRedacted: false, json: encodeCanonical(odd) })
    if (version.eventIdFormat === 'opaque') return
    const named = remade(version, { ...withoutUnsigned, event_id: '$mine:example.org' })
    expect(read(version, named)).toMatchObject({ pdu: named, eventId: eventIdOf(version, named), isRedacted: false })
    expect(eventIdOf(version, named)).not.toBe(eventIdOf(version, built.pdu))
  })

  test('the limit of size counts all but `unsigned`, signatures too', () => {
    const sized = (size: number) => remade(version, { ...withoutUnsigned, content: { body: 'x'.repeat(size) } })
    const room = MAX_RECEIVED_EVENT_BYTES - Buffer.byteLength(encodeCanonical(sized(0)))
    expect(read(version, { ...sized(room), unsigned: { age: 1 } }).isRedacted).toBe(false)
    expect(readPdu(version, sized(room + 1))).toMatchObject({ allowed: false, errcode: 'M_TOO_LARGE' })
  })

  test('numbers that canonical JSON forbids', () => {
    const withNumber = (value: number | bigint) =>
      readPdu(version, remade(version, { ...withoutUnsigned, content: { value } }))
    const isStrict = Number(version.id) >= 6
    expect('allowed' in withNumber(1.5)).toBe(isStrict)
    expect('allowed' in withNumber(-0)).toBe(isStrict)
    expect('allowed' in readPdu(version, built.pdu, 'float')).toBe(isStrict)
    for (const past of [2n ** 53n, -(2n ** 53n), 10n ** 300n]) {
      const refused = { allowed: false, reason: 'the event holds an integer past 2^53-1' }
      expect(withNumber(past)).toMatchObject(isStrict ? refused : { isRedacted: false })
    }
    expect('allowed' in withNumber(2 ** 53 - 1)).toBe(false)
  })

  test('what nobody can hash or encode', () => {
    let deep: JsonValue = []
    for (let level = 0; level < 50_000; level++) deep = [deep]
    const half = '\ud800'
    for (const content of [{ half }, { [half]: 1 }, { deep }, { list: [{ half }] }]) {
      expect(readPdu(version, { ...built.pdu, content })).toMatchObject({ allowed: false, errcode: 'M_BAD_JSON' })
    }
  })

  test('any JSON value gets an answer', () => {
    const keys = fc.constantFrom(...Object.keys(built.pdu), '__proto__', 'redacts', 'state_key', 'age_ts', 'unsigned')
    const patch = fc.dictionary(keys, fc.jsonValue({ maxDepth: 3 })) as fc.Arbitrary<JsonObject>
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue() as fc.Arbitrary<JsonValue>,
          patch.map((each) => ({ ...built.pdu, ...each })),
        ),
        (raw) => {
          const answer = readPdu(version, raw)
          expect('allowed' in answer ? answer.reason.length > 5 : answer.eventId.startsWith('$')).toBe(true)
        },
      ),
      { numRuns: 200 },
    )
  })
})

test.each([null, true, 0, '', 'text', [], [{}], {}])('%j is no event', (raw) => {
  expect(readPdu(roomVersion('12')!, raw)).toMatchObject({ allowed: false, errcode: 'M_BAD_JSON' })
})
