import { creatorsOf } from '../event/content.ts'
import { ALLOWED, type Pdu, refuse, type Verdict } from '../event/format.ts'
import { serverOf, type UserId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { type Integer, integerOf } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'

/** The power levels of a room: integers, or infinity for creators in versions that have that. */
export interface PowerLevels {
  readonly levelOf: (userId: string) => Integer
  /** The level for sending an event of this type. Without a level of its own, it depends on whether the event is state. */
  readonly toSend: (type: string, isState: boolean) => Integer
  readonly ban: Integer
  readonly kick: Integer
  readonly redact: Integer
  readonly invite: Integer
  /** The level for a notification by a keyword: `room` for `@room`. */
  readonly toNotify: (keyword: string) => Integer
}

/** The creator's level in a room without a power-levels event. */
const CREATOR_LEVEL = 100

/**
 * Reads the levels of a room from the content of its `m.room.power_levels`, undefined while it has none, and its create event.
 * Values that are not levels in this room version count as absent. Reading is lazy: thousands of users in the content cost nothing.
 *
 * Source: client-server API, `m.room.power_levels`; the defaults that differ between room versions are in the version table.
 */
export function readPowerLevels(
  version: RoomVersion,
  content: JsonObject | undefined,
  create: Pdu | undefined,
): PowerLevels {
  const creators = create === undefined ? [] : creatorsOf(version, create)
  const level = (key: string, otherwise: number) => levelAt(version, content, key) ?? otherwise
  const entry = (map: string, key: string) => levelAt(version, content?.[map], key)
  const stateDefault = content === undefined ? version.powerLevelDefaults.stateWithoutEvent : 50
  return {
    levelOf: (userId) => {
      const isCreator = creators.includes(userId)
      if (isCreator && version.creatorsAreInfinite) return Number.POSITIVE_INFINITY
      if (content === undefined) return isCreator ? CREATOR_LEVEL : 0
      return entry('users', userId) ?? level('users_default', 0)
    },
    toSend: (type, isState) =>
      entry('events', type) ?? (isState ? level('state_default', stateDefault) : level('events_default', 0)),
    toNotify: (keyword) => entry('notifications', keyword) ?? 50,
    ban: level('ban', 50),
    kick: level('kick', 50),
    redact: level('redact', 50),
    invite: level('invite', version.powerLevelDefaults.invite),
  }
}

/** The level under a key of a map, or undefined if there is none that is valid in this version. */
export function levelAt(version: RoomVersion, map: JsonValue | undefined, key: string): Integer | undefined {
  return isObject(map) && Object.hasOwn(map, key) ? readLevel(version, map[key]) : undefined
}

const INTEGER_TEXT = /^\s*[+-]?[0-9]+\s*$/

/**
 * Reads a level of this version. Old versions also allow decimal text (" +0100 "), and the oldest ones floats, which are truncated
 * (room version 1, "m.room.power_levels events accept values as strings" and "as floats").
 */
export function readLevel(version: RoomVersion, value: JsonValue | undefined): Integer | undefined {
  const numbers = version.powerLevelNumbers
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value)) return value
    // A number beyond 2^53-1 that is not a bigint was written as a float.
    return numbers === 'floats-and-strings' && Number.isFinite(value) ? integerOf(BigInt(Math.trunc(value))) : undefined
  }
  if (typeof value !== 'string' || numbers === 'integers' || !INTEGER_TEXT.test(value)) return undefined
  const level = Number(value)
  if (Number.isSafeInteger(level)) return level
  return Number.isFinite(level) ? BigInt(value) : undefined
}

/** The reason for a refusal for lack of power. */
export function lackOfPower(userId: string, level: Integer, what: string, required: Integer): string {
  return `To ${what} takes power level ${required}; ${userId} has ${level}.`
}

type Sent = Pick<Pdu, 'sender'>

/**
 * Whether an allowed redaction takes effect on its target (room version 3, "Handling redactions"): the sender needs the redact level, or
 * the target must be of the sender's server. In room versions 1 and 2 the authorisation rules have checked this already.
 */
export function mayRedact(version: RoomVersion, redaction: Sent, target: Sent, levels: PowerLevels): Verdict {
  const isSettled = version.authRulesCoverRedaction || serverOf(redaction.sender) === serverOf(target.sender)
  return isSettled ? ALLOWED : mayAskToRedact(redaction.sender, target, levels)
}

/** Whether a local user may redact an event (client-server API, "Redactions"): their own, or any with the redact level. */
export function mayAskToRedact(userId: UserId, target: Sent, levels: PowerLevels): Verdict {
  const level = levels.levelOf(userId)
  if (userId === target.sender || level >= levels.redact) return ALLOWED
  return refuse(lackOfPower(userId, level, 'redact what others sent', levels.redact))
}
