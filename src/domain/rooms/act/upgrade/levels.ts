import { levelAt, readLevel } from '../../../../core/auth/power-levels.ts'
import { isUserId } from '../../../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../../../core/json.ts'
import { clampToSafe } from '../../../../core/large-integers.ts'
import type { RoomVersion } from '../../../../core/room-version.ts'

/** The level of creators, and what only they may do, where creators stand above every level. */
const CREATOR_LEVEL = 100
const TOMBSTONE_LEVEL_UNDER_CREATORS = 150
/** In a room that was replaced, who has less than this sends nothing and invites nobody. */
const CLOSED_LEVEL = 50

const LEVELS = ['ban', 'kick', 'redact', 'invite', 'events_default', 'state_default', 'users_default'] as const
const MAPS = ['events', 'users', 'notifications'] as const

export interface Succession {
  readonly from: RoomVersion
  readonly to: RoomVersion
  /** Who made the old room, and who makes the new one. */
  readonly creators: readonly string[]
  readonly newCreators: readonly string[]
  /** What else the new event shows beside the levels. */
  readonly others: JsonObject
}

/**
 * The power levels of a new room from those of the room it replaces, in the form that its version requires. Creators are listed where
 * their version lists them, and nowhere else.
 */
export function levelsAfterUpgrade(content: JsonObject, succession: Succession): JsonObject {
  const { from, to, creators, newCreators } = succession
  const levels: { [key: string]: JsonValue } = { ...succession.others }
  for (const key of LEVELS) keep(levels, key, levelOf(from, content[key]))
  for (const key of MAPS) keep(levels, key, mapOf(from, content[key]))
  const users = Object.fromEntries(Object.entries(entriesOf(levels.users)).filter(([userId]) => isUserId(userId)))
  const events = entriesOf(levels.events)
  if (from.creatorsAreInfinite && !to.creatorsAreInfinite) {
    const highest = [users, events].flatMap((map) => Object.values(map)).reduce<number>(greater, CREATOR_LEVEL)
    for (const userId of creators) users[userId] = highest
  }
  if (!to.creatorsAreInfinite) return { ...levels, users }
  for (const userId of newCreators) delete users[userId]
  if (from.creatorsAreInfinite) return { ...levels, users }
  const tombstone = greater(TOMBSTONE_LEVEL_UNDER_CREATORS, events['m.room.tombstone'])
  return { ...levels, users, events: { ...events, 'm.room.tombstone': tombstone } }
}

const greater = (level: number, other: JsonValue | undefined): number =>
  typeof other === 'number' && other > level ? other : level

function keep(levels: { [key: string]: JsonValue }, key: string, value: JsonValue | undefined): void {
  if (value === undefined) delete levels[key]
  else levels[key] = value
}

function levelOf(version: RoomVersion, value: JsonValue | undefined): number | undefined {
  const level = readLevel(version, value)
  return level === undefined ? undefined : clampToSafe(level)
}

function mapOf(version: RoomVersion, map: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(map)) return undefined
  const entries = Object.entries(map).map(([key, value]) => [key, levelOf(version, value)] as const)
  return Object.fromEntries(entries.flatMap(([key, level]) => (level === undefined ? [] : [[key, level]])))
}

const entriesOf = (map: JsonValue | undefined): { [key: string]: JsonValue } => (isObject(map) ? { ...map } : {})

/**
 * The power levels that close a room which was replaced: ordinary members send nothing and invite nobody any more. Undefined if they do not
 * already.
 */
export function closingLevels(version: RoomVersion, content: JsonObject): JsonObject | undefined {
  const usersDefault = clampToSafe(levelAt(version, content, 'users_default') ?? 0)
  const closed = Math.min(Math.max(CLOSED_LEVEL, usersDefault + 1), Number.MAX_SAFE_INTEGER)
  const invite = clampToSafe(levelAt(version, content, 'invite') ?? version.powerLevelDefaults.invite)
  const events = clampToSafe(levelAt(version, content, 'events_default') ?? 0)
  if (invite >= closed && events >= closed) return undefined
  return { ...content, events_default: Math.max(events, closed), invite: Math.max(invite, closed) }
}
