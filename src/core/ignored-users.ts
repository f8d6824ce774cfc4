import type { UserId } from './ids.ts'
import { isUserId } from './ids.ts'
import { isObject, type JsonObject } from './json.ts'

/** The type of account data that lists them. */
export const IGNORED_USER_LIST = 'm.ignored_user_list'

/**
 * The users whom `m.ignored_user_list` names (client-server API, "Ignoring users"). Nobody ignores themselves. A list of another form names
 * nobody: undefined.
 *
 * @param by whose list it is, if that is known
 */
export function ignoredIn(content: JsonObject | undefined, by?: UserId): ReadonlySet<string> | undefined {
  const listed = content?.ignored_users
  if (!isObject(listed)) return undefined
  const ignored = new Set(Object.keys(listed).filter((userId) => isUserId(userId) && userId !== by))
  return ignored.size === 0 ? undefined : ignored
}
