import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readLevel } from '../../../src/core/auth/power-levels.ts'
import { authorise } from '../../../src/core/auth/rules.ts'
import { buildEvent, checkBuilt, type EventDraft, nextDepth } from '../../../src/core/event/build.ts'
import { readPdu } from '../../../src/core/event/read.ts'
import { redact } from '../../../src/core/event/redact.ts'
import { isSignedBy } from '../../../src/core/event/signers.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import { readExactJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion } from '../../../src/core/room-version.ts'
import { referenceHash } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { encodeIndependently } from '../../support/independent-json.ts'

const ORIGIN = 'example.org' as ServerName
const KEY = signingKeyFromSeed('ed25519:large', Buffer.alloc(32, 3))
const KEYS = [{ keyId: KEY.keyId, publicKey: KEY.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }]
const LIMIT = 2n ** 63n - 1n
const LARGE = 123456789012345678901234567890n

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64').slice(0, 43)

const draftIn = (version: RoomVersion, more: Partial<EventDraft> = {}): EventDraft => ({
  type: 'm.room.power_levels',
  state_key: '',
  sender: '@alice:example.org' as UserId,
  room_id: '!room:example.org' as RoomId,
  content: { users: { '@alice:example.org': LARGE }, ban: -LARGE, other: [2n ** 53n] },
  origin_server_ts: 2n ** 60n,
  depth: LIMIT,
  prev_events: [],
  auth_events: [],
  ...(version.eventIdFormat === 'opaque' ? { event_id: '$large:example.org' as EventId } : {}),
  ...more,
})

const lax = ROOM_VERSIONS.filter(({ enforcesCanonicalJson }) => !enforcesCanonicalJson)
const strict = ROOM_VERSIONS.filter(({ enforcesCanonicalJson }) => enforcesCanonicalJson)

test('B10: the versions that keep them are 1 to 5', () => {
  expect(lax.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
})

describe.each(lax)('B10: room version $id', (version) => {
  const built = buildEvent(version, draftIn(version), ORIGIN, KEY)
  const { hashes, signatures, ...hashed } = built.pdu

  test('B10: hashes, signs and refers to the digits, as an independent encoder writes them', () => {
    expect(hashes.sha256).toBe(sha256(encodeIndependently(hashed)))
    expect(built.json).toBe(encodeIndependently(built.pdu))
    const { signatures: _, ...signed } = redact(version, built.pdu)
    const reference = createHash('sha256').update(encodeIndependently(signed)).digest()
    expect(referenceHash(version, built.pdu)).toEqual(reference)
    expect(isSignedBy(version, built.pdu, ORIGIN, [{ ...KEYS[0]!, validUntilTs: Number.MAX_VALUE }])).toBe(true)
    expect(checkBuilt(version, built)).toEqual({ allowed: true })
  })

  test('B10: reads them again as they were', () => {
    const { value, offence } = readExactJson(built.json)
    const read = readPdu(version, value, offence)
    expect(read).toMatchObject({ eventId: built.eventId, json: built.json, isRedacted: false })
    expect('pdu' in read && read.pdu).toEqual(built.pdu)
  })

  test('B10: a digit that was changed is noticed, though no double shows it', () => {
    const { value, offence } = readExactJson(built.json.replaceAll(`${LARGE}`, `${LARGE + 1n}`))
    expect(readPdu(version, value, offence)).toMatchObject({ isRedacted: true })
  })

  test.each([LIMIT + 1n, -LIMIT, 2n ** 70n])('B10: a depth of %s is refused', (depth) => {
    const { value, offence } = readExactJson(built.json.replace(`"depth":${LIMIT}`, `"depth":${depth}`))
    expect(readPdu(version, value, offence)).toMatchObject({
      allowed: false,
      reason: 'depth must be an integer in range',
    })
  })

  test('B10: depth is one more than before, and stays at 2^63-1', () => {
    expect(nextDepth(version, 7)).toBe(8)
    expect(nextDepth(version, Number.MAX_SAFE_INTEGER)).toBe(2n ** 53n)
    expect(nextDepth(version, LIMIT - 1n)).toBe(LIMIT)
    expect(nextDepth(version, LIMIT)).toBe(LIMIT)
    expect(buildEvent(version, draftIn(version, { depth: LIMIT + 5n }), ORIGIN, KEY).pdu.depth).toBe(LIMIT)
  })

  test('B10: power levels are told apart by their last digit', () => {
    const create = { type: 'm.room.create', sender: '@alice:example.org', content: { creator: '@alice:example.org' } }
    const member = { type: 'm.room.member', sender: '@bob:example.org', content: { membership: 'join' } }
    const levels = { '@bob:example.org': LARGE, '@alice:example.org': LARGE + 1n }
    const state = new Map<string, object>([
      ['m.room.create ', create],
      ['m.room.member @bob:example.org', member],
      [
        'm.room.power_levels ',
        { type: 'm.room.power_levels', sender: '@alice:example.org', content: { users: levels } },
      ],
    ])
    const judge = (users: object) => {
      const draft = draftIn(version, { sender: '@bob:example.org' as UserId, content: { users: { ...users } } })
      const { pdu } = buildEvent(version, draft, ORIGIN, KEY)
      const cited = (type: string, key: string) => state.get(`${type} ${key}`) as typeof pdu | undefined
      return authorise(version, { ...pdu, prev_events: [['$x:example.org' as EventId, { sha256: '' }]] }, cited).allowed
    }
    expect(judge({ ...levels, '@carol:example.org': LARGE })).toBe(true)
    expect(judge({ ...levels, '@carol:example.org': LARGE + 1n })).toBe(false)
    expect(judge({ ...levels, '@alice:example.org': LARGE })).toBe(false)
  })

  test('B10: levels written as text are as exact', () => {
    expect(readLevel(version, ` +${LARGE} `)).toBe(LARGE)
    expect(readLevel(version, '0100')).toBe(100)
    expect(readLevel(version, 1e20)).toBe(10n ** 20n)
  })
})

describe.each(strict)('B10: room version $id', (version) => {
  test('B10: refuses integers past 2^53-1, as before', () => {
    const fine = { content: { n: 7 }, depth: 5, origin_server_ts: 1 }
    const built = buildEvent(
      version,
      draftIn(version, { ...fine, room_id: `!${'a'.repeat(43)}` as RoomId }),
      ORIGIN,
      KEY,
    )
    const { value, offence } = readExactJson(built.json.replace('"n":7', `"n":${LARGE}`))
    expect(readPdu(version, value, offence)).toEqual({
      allowed: false,
      errcode: 'M_BAD_JSON',
      reason: 'the event holds an integer past 2^53-1',
    })
    expect(nextDepth(version, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER)
  })
})
