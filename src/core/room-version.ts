import type { Integer } from './large-integers.ts'

/** The form of event ids in a version: chosen by the sender, or the reference hash in one of two base64 alphabets. */
export type EventIdFormat = 'opaque' | 'base64' | 'base64url'

/** Allowed values of a power level beside integers: floats (truncated) and numeric strings; numeric strings; none. */
export type PowerLevelNumbers = 'floats-and-strings' | 'strings' | 'integers'

export type StateResolution = 'v1' | 'v2' | 'v2.1'

export type JoinRule = 'public' | 'invite' | 'knock' | 'restricted' | 'knock_restricted'

/** What a redaction keeps of a value: all of it, or these keys of an object. */
export type Kept = true | { readonly [key: string]: Kept }

export interface RedactionRules {
  /** The top-level keys that stay. */
  readonly topLevel: ReadonlySet<string>
  /** What a redaction keeps of `content`, by event type; nothing for other types. */
  readonly content: { readonly [type: string]: Kept }
}

/** Default power levels. */
export interface PowerLevelDefaults {
  /** The level for inviting when `m.room.power_levels` has no `invite`. */
  readonly invite: number
  /** The level for sending state while the room has no `m.room.power_levels` at all. */
  readonly stateWithoutEvent: number
}

/** The rules of one room version, as named properties. No other file compares version ids. */
export interface RoomVersion {
  readonly id: string

  // Event format
  readonly eventIdFormat: EventIdFormat
  /** `prev_events` and `auth_events` hold `[id, {sha256}]` pairs instead of ids. */
  readonly referencesCarryHashes: boolean
  /** The room's id is its create event's id with the sigil `!`; the create event has no `room_id`. */
  readonly roomIdIsCreateHash: boolean
  /** Our events name the server that made them (`origin`), as long as redaction keeps it. */
  readonly eventsNameOrigin: boolean
  /** A redaction names its target in `content.redacts` instead of a top-level `redacts`. */
  readonly redactsIsInContent: boolean
  /** What canonical JSON forbids (floats, integers past 2^53-1) makes an event invalid. */
  readonly enforcesCanonicalJson: boolean
  /** The greatest depth of an event. Once a room has reached it, new events have it too. */
  readonly maxDepth: Integer
  readonly redaction: RedactionRules

  // Signatures
  /** The server named in the event id must have signed, besides the sender's. */
  readonly eventIdServerMustSign: boolean
  /** A key counts only for events no later than its `valid_until_ts`. */
  readonly enforcesKeyValidity: boolean

  // Authorisation
  /** `m.room.aliases` is authorised by its state key (the sender's server) alone. */
  readonly aliasesHaveOwnRule: boolean
  /** The auth rules require the redact level (or an event of the same server); in later versions it is checked when the redaction is applied. */
  readonly authRulesCoverRedaction: boolean
  /** Changes of `notifications` are bounded by the sender's level, as changes of `events` are. */
  readonly guardsNotificationLevels: boolean
  readonly joinRules: ReadonlySet<string>
  readonly knocking: boolean
  /** Joins by `allow`, with `join_authorised_via_users_server`. */
  readonly restrictedJoins: boolean
  readonly powerLevelNumbers: PowerLevelNumbers
  readonly powerLevelDefaults: PowerLevelDefaults
  /** The creator is `content.creator`; later it is the create event's sender. */
  readonly createNamesCreator: boolean
  /** Creators (sender and `additional_creators`) have infinite power and may not be listed in `users`. */
  readonly creatorsAreInfinite: boolean
  /** The create event is among the auth events of every other; later the room id implies it. */
  readonly createIsAuthEvent: boolean

  readonly stateResolution: StateResolution
}

const BASE_REDACTION: RedactionRules = {
  topLevel: new Set([
    'event_id',
    'type',
    'room_id',
    'sender',
    'state_key',
    'content',
    'hashes',
    'signatures',
    'depth',
    'prev_events',
    'prev_state',
    'auth_events',
    'origin',
    'origin_server_ts',
    'membership',
  ]),
  content: {
    'm.room.member': { membership: true },
    'm.room.create': { creator: true },
    'm.room.join_rules': { join_rule: true },
    'm.room.power_levels': {
      ban: true,
      events: true,
      events_default: true,
      kick: true,
      redact: true,
      state_default: true,
      users: true,
      users_default: true,
    },
    'm.room.aliases': { aliases: true },
    'm.room.history_visibility': { history_visibility: true },
  },
}

/** Earlier redaction rules with changes for the content of some types; `undefined` keeps nothing. */
function keeping(earlier: RedactionRules, content: { readonly [type: string]: Kept | undefined }): RedactionRules {
  const merged: { [type: string]: Kept } = { ...earlier.content }
  for (const [type, kept] of Object.entries(content)) {
    if (kept === undefined) delete merged[type]
    else if (kept === true) merged[type] = true
    else merged[type] = { ...(merged[type] as object), ...kept }
  }
  return { ...earlier, content: merged }
}

const NO_LONGER_KEPT: ReadonlySet<string> = new Set(['prev_state', 'origin', 'membership'])

const v1: RoomVersion = {
  id: '1',
  eventIdFormat: 'opaque',
  referencesCarryHashes: true,
  roomIdIsCreateHash: false,
  eventsNameOrigin: true,
  redactsIsInContent: false,
  enforcesCanonicalJson: false,
  maxDepth: 2n ** 63n - 1n,
  redaction: BASE_REDACTION,
  eventIdServerMustSign: true,
  enforcesKeyValidity: false,
  aliasesHaveOwnRule: true,
  authRulesCoverRedaction: true,
  guardsNotificationLevels: false,
  joinRules: new Set<JoinRule>(['public', 'invite']),
  knocking: false,
  restrictedJoins: false,
  powerLevelNumbers: 'floats-and-strings',
  powerLevelDefaults: { invite: 50, stateWithoutEvent: 0 },
  createNamesCreator: true,
  creatorsAreInfinite: false,
  createIsAuthEvent: true,
  stateResolution: 'v1',
}

const v2: RoomVersion = { ...v1, id: '2', stateResolution: 'v2' }

const v3: RoomVersion = {
  ...v2,
  id: '3',
  eventIdFormat: 'base64',
  referencesCarryHashes: false,
  eventIdServerMustSign: false,
  authRulesCoverRedaction: false,
}

const v4: RoomVersion = { ...v3, id: '4', eventIdFormat: 'base64url' }

const v5: RoomVersion = { ...v4, id: '5', enforcesKeyValidity: true }

const v6: RoomVersion = {
  ...v5,
  id: '6',
  enforcesCanonicalJson: true,
  maxDepth: Number.MAX_SAFE_INTEGER,
  redaction: keeping(v5.redaction, { 'm.room.aliases': undefined }),
  aliasesHaveOwnRule: false,
  guardsNotificationLevels: true,
  powerLevelNumbers: 'strings',
}

const v7: RoomVersion = {
  ...v6,
  id: '7',
  joinRules: new Set<JoinRule>(['public', 'invite', 'knock']),
  knocking: true,
  powerLevelDefaults: { invite: 0, stateWithoutEvent: 50 },
}

const v8: RoomVersion = {
  ...v7,
  id: '8',
  redaction: keeping(v7.redaction, { 'm.room.join_rules': { allow: true } }),
  joinRules: new Set<JoinRule>(['public', 'invite', 'knock', 'restricted']),
  restrictedJoins: true,
}

const v9: RoomVersion = {
  ...v8,
  id: '9',
  redaction: keeping(v8.redaction, { 'm.room.member': { join_authorised_via_users_server: true } }),
}

const v10: RoomVersion = {
  ...v9,
  id: '10',
  joinRules: new Set<JoinRule>(['public', 'invite', 'knock', 'restricted', 'knock_restricted']),
  powerLevelNumbers: 'integers',
}

const v11: RoomVersion = {
  ...v10,
  id: '11',
  eventsNameOrigin: false,
  redactsIsInContent: true,
  redaction: {
    topLevel: new Set([...v10.redaction.topLevel].filter((key) => !NO_LONGER_KEPT.has(key))),
    content: keeping(v10.redaction, {
      'm.room.member': { third_party_invite: { signed: true } },
      'm.room.create': true,
      'm.room.power_levels': { invite: true },
      'm.room.redaction': { redacts: true },
    }).content,
  },
  createNamesCreator: false,
}

const v12: RoomVersion = {
  ...v11,
  id: '12',
  roomIdIsCreateHash: true,
  creatorsAreInfinite: true,
  createIsAuthEvent: false,
  stateResolution: 'v2.1',
}

/** Every version this server speaks, oldest first. All are stable in the published sense. */
export const ROOM_VERSIONS: readonly RoomVersion[] = [v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12]

const BY_ID: ReadonlyMap<string, RoomVersion> = new Map(ROOM_VERSIONS.map((version) => [version.id, version]))

/** The version of a create event that names none. */
export const UNNAMED_ROOM_VERSION: RoomVersion = v1

/** The rules of a version, or undefined when this server does not know it. */
export function roomVersion(id: string): RoomVersion | undefined {
  return BY_ID.get(id)
}
