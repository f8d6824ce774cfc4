import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildEvent } from '../../../src/core/event/build.ts'
import { redact, redactContent } from '../../../src/core/event/redact.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, roomVersion } from '../../../src/core/room-version.ts'
import { anyDraft, draftFor, KEY, ORIGIN } from './drafts.ts'

describe.each(ROOM_VERSIONS)('room version $id', (version) => {
  test('redacting twice is redacting once, and only takes away', () => {
    fc.assert(
      fc.property(anyDraft(version), (draft) => {
        const { pdu } = buildEvent(version, draft, ORIGIN, KEY)
        const redacted = redact(version, pdu)
        expect(redact(version, redacted)).toEqual(redacted)
        for (const key of Object.keys(redacted)) {
          if (key !== 'content') expect(redacted[key]).toBe(pdu[key])
        }
        for (const key of Object.keys(redacted.content)) expect(Object.hasOwn(pdu.content, key)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })
})

/** Every type that keeps something, with the versions in which it keeps these keys and no others. */
const KEPT: readonly (readonly [type: string, from: number, to: number, keys: readonly string[]])[] = [
  ['m.room.member', 1, 8, ['membership']],
  ['m.room.member', 9, 10, ['membership', 'join_authorised_via_users_server']],
  ['m.room.member', 11, 12, ['membership', 'join_authorised_via_users_server', 'third_party_invite']],
  ['m.room.create', 1, 10, ['creator']],
  ['m.room.join_rules', 1, 7, ['join_rule']],
  ['m.room.join_rules', 8, 12, ['join_rule', 'allow']],
  ['m.room.aliases', 1, 5, ['aliases']],
  ['m.room.aliases', 6, 12, []],
  ['m.room.history_visibility', 1, 12, ['history_visibility']],
  ['m.room.redaction', 1, 10, []],
  ['m.room.redaction', 11, 12, ['redacts']],
  ['m.room.message', 1, 12, []],
  ['constructor', 1, 12, []],
  ['__proto__', 1, 12, []],
]
const LEVELS = ['ban', 'events', 'events_default', 'kick', 'redact', 'state_default', 'users', 'users_default']
const CASES = [
  ...KEPT,
  ['m.room.power_levels', 1, 10, LEVELS] as const,
  ['m.room.power_levels', 11, 12, [...LEVELS, 'invite']] as const,
]

test.each(CASES)('%s in versions %i to %i keeps %j (rooms, "Redactions")', (type, from, to, keys) => {
  const everyKey = [
    ...new Set(CASES.flatMap(([, , , names]) => names)),
    'notifications',
    'displayname',
    'body',
    '__proto__',
  ]
  const content: JsonObject = Object.fromEntries(everyKey.map((key) => [key, { signed: 1 }]))
  for (let id = from; id <= to; id++) {
    expect(Object.keys(redactContent(roomVersion(`${id}`)!, type, content)).sort()).toEqual([...keys].sort())
  }
})

test('from version 11 on a create event keeps all it says, and a third-party invite what was signed', () => {
  const content = JSON.parse('{"creator":"@a:b","__proto__":{"x":1},"type":"m.space"}')
  expect(redactContent(roomVersion('11')!, 'm.room.create', content)).toEqual(content)
  const invite = (third_party_invite: JsonObject | string) =>
    redactContent(roomVersion('11')!, 'm.room.member', { membership: 'invite', third_party_invite })
  expect(invite({ display_name: 'A', signed: { token: 't' } })).toEqual({
    membership: 'invite',
    third_party_invite: { signed: { token: 't' } },
  })
  expect(invite('text')).toEqual({ membership: 'invite' })
})

test('the top level keeps what the version lists', () => {
  const extra = {
    prev_state: [],
    membership: 'join',
    origin: 'b',
    age_ts: 1,
    redacts: '$x',
    unsigned: {},
    event_id: '$y',
  }
  const keys = (id: string) => {
    const version = roomVersion(id)!
    const { pdu } = buildEvent(version, draftFor(version, { state_key: '' }), ORIGIN, KEY)
    return Object.keys(redact(version, { ...pdu, ...extra } as unknown as typeof pdu)).sort()
  }
  const kept = ['auth_events', 'content', 'depth', 'event_id', 'hashes', 'origin_server_ts', 'prev_events', 'room_id']
  const always = [...kept, 'sender', 'signatures', 'state_key', 'type']
  expect(keys('10')).toEqual([...always, 'membership', 'origin', 'prev_state'].sort())
  expect(keys('11')).toEqual(always)
})
