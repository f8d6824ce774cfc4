import fc from 'fast-check'
import type { EventDraft } from '../../../src/core/event/build.ts'
import type { EventReference } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'

export const ORIGIN = 'example.org' as ServerName
export const KEY = signingKeyFromSeed('ed25519:test', Buffer.alloc(32, 1))
/** The key as others know it. */
export const KEYS = [{ keyId: KEY.keyId, publicKey: KEY.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }]

const HASH = 'Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ'

/** A message that fits the version, with whatever a test wants different. */
export function draftFor(version: RoomVersion, different: Partial<EventDraft> = {}): EventDraft {
  return {
    type: 'm.room.message',
    sender: '@alice:example.org' as UserId,
    room_id: (version.roomIdIsCreateHash ? `!${HASH}` : '!room:example.org') as RoomId,
    content: { msgtype: 'm.text', body: 'hello' },
    origin_server_ts: 1_700_000_000_000,
    depth: 7,
    prev_events: [referenceFor(version, 1)],
    auth_events: [referenceFor(version, 2), referenceFor(version, 3)],
    ...(version.eventIdFormat === 'opaque' ? { event_id: '$made:example.org' as EventId } : {}),
    ...different,
  }
}

export function referenceFor(version: RoomVersion, number: number): EventReference {
  if (version.referencesCarryHashes) return [`$e${number}:example.org` as EventId, { sha256: HASH }]
  return `$${HASH.slice(0, -1)}${number}` as EventId
}

const TYPES = [
  'm.room.create',
  'm.room.member',
  'm.room.power_levels',
  'm.room.join_rules',
  'm.room.history_visibility',
  'm.room.aliases',
  'm.room.redaction',
  'm.room.message',
  '__proto__',
  'constructor',
]

const CONTENT_KEYS = [
  ...['membership', 'creator', 'join_rule', 'allow', 'ban', 'invite', 'kick', 'users', 'users_default', 'aliases'],
  ...['history_visibility', 'redacts', 'third_party_invite', 'join_authorised_via_users_server', 'signed', 'body'],
  ...['__proto__', '10', '9', '\u{10000}', '\uffff'],
]

/** Drafts of every kind, with contents that redaction treats differently and keys that are easy to lose. */
export function anyDraft(version: RoomVersion): fc.Arbitrary<EventDraft> {
  const present = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
  const different = fc.record({
    type: fc.constantFrom(...TYPES),
    state_key: present(fc.constantFrom('', '@alice:example.org', 'ключ"')),
    content: anyContent(),
    depth: fc.nat(),
    origin_server_ts: fc.nat(),
    redacts: present(fc.constant('$target' as EventId)),
    unsigned: present(anyContent()),
    namesOrigin: present(fc.constant(true as const)),
  })
  return different.map((chosen) => {
    const set = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined))
    return draftFor(version, set as Partial<EventDraft>)
  })
}

function anyContent(): fc.Arbitrary<JsonObject> {
  const leaf: fc.Arbitrary<JsonValue> = fc.oneof(fc.integer(), fc.string({ unit: 'grapheme' }), fc.constant(null))
  const entries = (value: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonObject> =>
    fc
      .array(fc.tuple(fc.constantFrom(...CONTENT_KEYS), value), { maxLength: 8 })
      .map((pairs) => Object.fromEntries(pairs))
  return entries(fc.oneof(leaf, entries(leaf), fc.array(leaf, { maxLength: 3 })))
}
