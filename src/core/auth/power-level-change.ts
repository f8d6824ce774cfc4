import { creatorsOf } from '../event/content.ts'
import { ALLOWED, type Verdict } from '../event/format.ts'
import { isUserId } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import type { Integer } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'
import { type Clause, rejectBy } from './clauses.ts'
import type { AuthContext } from './context.ts'
import { levelAt, readLevel } from './power-levels.ts'

// Clauses of rule 10 (rule 9 in room versions 6 to 11), numbered as in room version 12. The first two came with version 10,
// 10.4 with 12: without them what follows moves up.

const NAMED_LEVELS = ['users_default', 'events_default', 'state_default', 'ban', 'redact', 'kick', 'invite'] as const

/** 10. `m.room.power_levels` */
export function authorisePowerLevels(context: AuthContext): Verdict {
  const { version, event, state, levels } = context
  const { content, sender } = event
  const shape = checkShape(version, content, creatorsOf(version, context.create))
  if (!shape.allowed) return shape
  // 10.5. The first power levels are allowed.
  const current = state('m.room.power_levels', '')?.content
  if (current === undefined) return ALLOWED
  return firstRefusal(changesOf(version, current, content), (change) =>
    judge(version, change, sender, levels.levelOf(sender)),
  )
}

/** 10.1 to 10.4: the form of the content. */
function checkShape(version: RoomVersion, content: JsonObject, creators: readonly string[]): Verdict {
  if (version.powerLevelNumbers === 'integers') {
    // 10.1. Levels must be integers.
    const odd = NAMED_LEVELS.find((key) => content[key] !== undefined && readLevel(version, content[key]) === undefined)
    if (odd !== undefined) return notALevel(version, 'power-levels.named-types', odd)
    // 10.2. Levels of events and notifications must be integers too.
    const oddMap = ['events', 'notifications'].find((key) => !isLevelMap(version, content[key]))
    if (oddMap !== undefined) {
      return rejectBy(version, 'power-levels.map-types', `"${oddMap}" must give an integer for each of its keys.`)
    }
  }
  // 10.3. The keys of `users` must be user ids.
  const { users } = content
  if (!isLevelMap(version, users)) {
    return rejectBy(version, 'power-levels.user-types', '"users" must give an integer for each user.')
  }
  if (!Object.keys(users ?? {}).every(isUserId)) {
    return rejectBy(version, 'power-levels.user-types', 'The keys of "users" must be user ids.')
  }
  // 10.4. `users` must not contain creators.
  const listsCreator = version.creatorsAreInfinite && creators.some((creator) => Object.hasOwn(users ?? {}, creator))
  if (!listsCreator) return ALLOWED
  const reason = 'The creators of a room stand above all power levels and cannot be in "users".'
  return rejectBy(version, 'power-levels.creators', reason)
}

/** Whether a map is absent, or an object that contains only levels. */
function isLevelMap(version: RoomVersion, map: JsonValue | undefined): map is JsonObject | undefined {
  if (map === undefined) return true
  return isObject(map) && Object.values(map).every((value) => readLevel(version, value) !== undefined)
}

/** One level that differs between the room's current power levels and the new ones. */
interface Change {
  readonly map: 'users' | 'events' | 'notifications' | undefined
  readonly key: string
  /** Undefined when added. */
  readonly from: Integer | undefined
  /** Undefined when removed. */
  readonly to: Integer | undefined
  /** The new value is not a level, which is possible only in versions without 10.1 and 10.2. */
  readonly isOdd: boolean
}

function* changesOf(version: RoomVersion, current: JsonObject, next: JsonObject): Generator<Change> {
  yield* changesIn(version, undefined, current, next, NAMED_LEVELS)
  // 10.7 and 10.8 apply to `notifications` only from room version 6 on.
  for (const map of version.guardsNotificationLevels ? (['events', 'notifications'] as const) : (['events'] as const)) {
    yield* changesIn(version, map, current[map], next[map])
  }
  yield* changesIn(version, 'users', current.users, next.users)
}

function* changesIn(
  version: RoomVersion,
  map: Change['map'],
  current: JsonValue | undefined,
  next: JsonValue | undefined,
  keys: Iterable<string> = new Set([...keysOf(current), ...keysOf(next)]),
): Generator<Change> {
  for (const key of keys) {
    const from = levelAt(version, current, key)
    const to = levelAt(version, next, key)
    const isOdd = to === undefined && isObject(next) && Object.hasOwn(next, key)
    if (from !== to || isOdd) yield { map, key, from, to, isOdd }
  }
}

function keysOf(map: JsonValue | undefined): string[] {
  return isObject(map) ? Object.keys(map) : []
}

/** The clauses for a level that is changed or removed, and for one that is added or changed. */
function clausesOn(map: Change['map']): { readonly current: Clause; readonly new: Clause } {
  if (map === undefined) return { current: 'power-levels.named.current', new: 'power-levels.named.new' }
  if (map === 'users') return { current: 'power-levels.users-current.level', new: 'power-levels.users-new.level' }
  return { current: 'power-levels.maps-current.level', new: 'power-levels.maps-new.level' }
}

function judge(version: RoomVersion, { map, key, from, to, isOdd }: Change, sender: string, level: Integer): Verdict {
  const name = map === undefined ? `"${key}"` : `"${key}" in "${map}"`
  const clauses = clausesOn(map)
  if (isOdd) return notALevel(version, clauses.new, key)
  // 10.9. A sender cannot change the level of another user with the same or a higher level.
  if (map === 'users' && key !== sender && from !== undefined && from >= level) {
    const reason = `${key} has power level ${from}, which ${sender}, with ${level}, cannot change.`
    return rejectBy(version, clauses.current, reason)
  }
  // 10.6.1, 10.7. A sender cannot change a level above their own.
  if (map !== 'users' && from !== undefined && from > level) {
    const reason = `${name} is at power level ${from}, which ${sender}, with ${level}, cannot change.`
    return rejectBy(version, clauses.current, reason)
  }
  // 10.6.2, 10.8, 10.10. A sender cannot set a level above their own.
  if (to === undefined || to <= level) return ALLOWED
  return rejectBy(version, clauses.new, `${sender}, with power level ${level}, cannot set ${name} to ${to}.`)
}

function notALevel(version: RoomVersion, clause: Clause, key: string): Verdict {
  return rejectBy(version, clause, `"${key}" must be an integer.`)
}

function firstRefusal(changes: Iterable<Change>, judgement: (change: Change) => Verdict): Verdict {
  for (const change of changes) {
    const verdict = judgement(change)
    if (!verdict.allowed) return verdict
  }
  return ALLOWED
}
