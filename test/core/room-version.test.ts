import { expect, test } from 'vitest'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../src/core/room-version.ts'

/** The columns in which each version differs from the one before it (rooms, "Room versions"). */
const CHANGES: { readonly [id: string]: Partial<Record<keyof RoomVersion, unknown>> } = {
  2: { stateResolution: 'v2' },
  3: {
    eventIdFormat: 'base64',
    referencesCarryHashes: false,
    eventIdServerMustSign: false,
    authRulesCoverRedaction: false,
  },
  4: { eventIdFormat: 'base64url' },
  5: { enforcesKeyValidity: true },
  6: {
    enforcesCanonicalJson: true,
    maxDepth: Number.MAX_SAFE_INTEGER,
    redaction: expect.anything(),
    aliasesHaveOwnRule: false,
    guardsNotificationLevels: true,
    powerLevelNumbers: 'strings',
  },
  7: {
    joinRules: new Set(['public', 'invite', 'knock']),
    knocking: true,
    powerLevelDefaults: { invite: 0, stateWithoutEvent: 50 },
  },
  8: {
    redaction: expect.anything(),
    joinRules: new Set(['public', 'invite', 'knock', 'restricted']),
    restrictedJoins: true,
  },
  9: { redaction: expect.anything() },
  10: {
    joinRules: new Set(['public', 'invite', 'knock', 'restricted', 'knock_restricted']),
    powerLevelNumbers: 'integers',
  },
  11: { eventsNameOrigin: false, redactsIsInContent: true, redaction: expect.anything(), createNamesCreator: false },
  12: { roomIdIsCreateHash: true, creatorsAreInfinite: true, createIsAuthEvent: false, stateResolution: 'v2.1' },
}

test('the table has versions 1 to 12 in order', () => {
  expect(ROOM_VERSIONS.map(({ id }) => id)).toEqual(Array.from({ length: 12 }, (_, index) => `${index + 1}`))
  for (const version of ROOM_VERSIONS) expect(roomVersion(version.id)).toBe(version)
})

test.each(['0', '13', '', '1.0', '__proto__', 'constructor'])('%j is not a version', (id) => {
  expect(roomVersion(id)).toBeUndefined()
})

test.each(ROOM_VERSIONS.slice(1))('version $id changes what the specification says and nothing else', (version) => {
  const earlier = roomVersion(`${Number(version.id) - 1}`)!
  const columns = Object.keys(version) as (keyof RoomVersion)[]
  const changed = columns.filter((column) => column !== 'id' && version[column] !== earlier[column])
  expect(Object.fromEntries(changed.map((column) => [column, version[column]]))).toEqual(CHANGES[version.id])
})
