import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { statedMembership } from './content.ts'

/** Gives what a value must be, in words; undefined if it is that. */
type Check = (value: JsonValue) => string | undefined

/** The fields of a kind of event. Other fields may have any value. */
interface Shape {
  readonly required?: Readonly<Record<string, Check>>
  readonly optional?: Readonly<Record<string, Check>>
  /** Clients remove such state by setting it to `{}`. */
  readonly mayBeEmpty?: boolean
}

const text: Check = (value) => (typeof value === 'string' ? undefined : 'text')
// Room versions that forbid large integers have refused them before.
const integer: Check = (value) => (Number.isInteger(value) || typeof value === 'bigint' ? undefined : 'an integer')
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
const object: Check = (value) => (isObject(value) ? undefined : 'an object')
const membership: Check = (value) =>
  statedMembership({ membership: value }) ? undefined : 'one of invite, join, knock, leave and ban'
const texts: Check = (value) =>
  Array.isArray(value) && value.every((one) => text(one) === undefined) ? undefined : 'a list of text'
const levels: Check = (value) =>
  isObject(value) && Object.values(value).every((one) => integer(one) === undefined)
    ? undefined
    : 'an object of integers'
const listOf =
  (shape: Shape, what: string): Check =>
  (value) =>
    Array.isArray(value) && value.every((one) => isObject(one) && flawIn(shape, one) === undefined) ? undefined : what
const objectOf =
  (shape: Shape, what: string): Check =>
  (value) =>
    isObject(value) && flawIn(shape, value) === undefined ? undefined : what

const POLICY_RULE: Shape = { optional: { entity: text, reason: text, recommendation: text }, mayBeEmpty: true }
const SIGNED: Shape = { required: { mxid: text, signatures: object, token: text } }
const THIRD_PARTY_INVITE: Shape = {
  required: { display_name: text, signed: objectOf(SIGNED, 'an object with `mxid`, `signatures` and `token`') },
}
const PUBLIC_KEY: Shape = { required: { public_key: text }, optional: { key_validity_url: text } }

/**
 * The kinds of state in the specification ("Room Events", `m.room.*` and similar) that clients may set. Required fields that some clients
 * leave out are not required here.
 */
const SHAPES: Readonly<Record<string, Shape>> = {
  'm.room.avatar': { optional: { url: text, info: object } },
  'm.room.canonical_alias': { optional: { alias: text, alt_aliases: texts } },
  'm.room.encryption': {
    required: { algorithm: text },
    optional: { rotation_period_ms: integer, rotation_period_msgs: integer },
  },
  'm.room.guest_access': { required: { guest_access: text } },
  'm.room.history_visibility': { required: { history_visibility: text } },
  'm.room.join_rules': {
    required: { join_rule: text },
    optional: {
      allow: listOf({ required: { type: text }, optional: { room_id: text } }, 'a list of objects with a `type`'),
    },
  },
  'm.room.member': {
    required: { membership },
    optional: {
      ...{ displayname: text, avatar_url: text, is_direct: flag, reason: text },
      join_authorised_via_users_server: text,
      third_party_invite: objectOf(THIRD_PARTY_INVITE, 'an object with `display_name` and `signed`'),
    },
  },
  'm.room.name': { required: { name: text }, mayBeEmpty: true },
  'm.room.pinned_events': { required: { pinned: texts }, mayBeEmpty: true },
  'm.room.power_levels': {
    optional: {
      ...{ ban: integer, invite: integer, kick: integer, redact: integer },
      ...{ events_default: integer, state_default: integer, users_default: integer },
      ...{ events: levels, users: levels, notifications: levels },
    },
  },
  'm.room.server_acl': { optional: { allow: texts, deny: texts, allow_ip_literals: flag } },
  'm.room.third_party_invite': {
    optional: {
      ...{ display_name: text, key_validity_url: text, public_key: text },
      public_keys: listOf(PUBLIC_KEY, 'a list of objects with a `public_key`'),
    },
  },
  'm.room.tombstone': { required: { body: text, replacement_room: text } },
  'm.room.topic': { required: { topic: text }, mayBeEmpty: true },
  'm.space.child': { optional: { via: texts, order: text, suggested: flag } },
  'm.space.parent': { optional: { via: texts, canonical: flag } },
  'm.policy.rule.room': POLICY_RULE,
  'm.policy.rule.server': POLICY_RULE,
  'm.policy.rule.user': POLICY_RULE,
}

/**
 * The mistake in the content of a state event that a local user wants to set, in words that follow the type's name; undefined if there is
 * none, and for unknown types. `null` counts as absent. Events of other servers are checked by the authorisation rules alone.
 */
export function flawInState(type: string, content: JsonObject): string | undefined {
  const shape = Object.hasOwn(SHAPES, type) ? SHAPES[type] : undefined
  if (shape === undefined || (shape.mayBeEmpty && Object.keys(content).length === 0)) return undefined
  return flawIn(shape, content)
}

function flawIn({ required = {}, optional = {} }: Shape, content: JsonObject): string | undefined {
  const missing = Object.keys(required).find((key) => fieldOf(content, key) === undefined)
  if (missing !== undefined) return `needs \`${missing}\``
  for (const [key, check] of Object.entries({ ...required, ...optional })) {
    const value = fieldOf(content, key)
    const wanted = value === undefined ? undefined : check(value)
    if (wanted !== undefined) return `needs \`${key}\` to be ${wanted}`
  }
  return undefined
}

function fieldOf(content: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(content, key) ? (content[key] ?? undefined) : undefined
}
