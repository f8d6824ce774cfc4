import type { Config } from '../../../config/schema.ts'
import { userTermOf } from '../../../core/user-words.ts'
import type { Database } from '../../../store/db/db.ts'
import { searches } from '../../../store/db/whole-tables.ts'
import { findUsers } from '../../../store/user-directory/find-users.ts'
import type { Requester } from '../../accounts/requester.ts'
import {
  DIRECTORY_RESULTS,
  MAX_DIRECTORY_CANDIDATES,
  MAX_DIRECTORY_COMPANY,
  MAX_DIRECTORY_RESULTS,
  MAX_DIRECTORY_TERM_CHARS,
  MAX_DIRECTORY_TERM_WORDS,
  MAX_DIRECTORY_WORDS_LOOKED_AT,
} from '../../limits/user-directory.ts'
import type { IgnoredUsers } from './ignored-users.ts'

/** One result, as clients get it. */
export interface DirectoryResult {
  readonly user_id: string
  readonly display_name?: string
  readonly avatar_url?: string
}

/** Users by their ids and names (client-server API, "User Directory"). */
export interface UserDirectory {
  /**
   * The users with a matching localpart or name whom the requester may see: those in a room with them, and those in rooms that anyone may
   * join or read. The best match comes first.
   *
   * @param limit results wanted; at most 50 are given
   */
  search(
    by: Requester,
    term: string,
    limit: number | undefined,
  ): Promise<{ results: readonly DirectoryResult[]; limited: boolean }>
}

export function createUserDirectory(parts: {
  readonly config: Config
  readonly db: Database
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
}): UserDirectory {
  const { config, db, ignoredUsers } = parts
  return {
    async search(by, text, wanted) {
      const { words, server } = userTermOf(text.slice(0, MAX_DIRECTORY_TERM_CHARS), MAX_DIRECTORY_TERM_WORDS)
      if (!config.user_directory.enabled || words.length === 0) return { results: [], limited: false }
      const limit = Math.min(Math.max(1, wanted ?? DIRECTORY_RESULTS), MAX_DIRECTORY_RESULTS)
      const found = await findUsers(searches(db), {
        byNid: by.userNid,
        words,
        server,
        localpart: words.join(' '),
        ignored: [...((await ignoredUsers.of(by.userNid)) ?? [])],
        isAllLocal: config.user_directory.all_local_users,
        wordsLookedAt: MAX_DIRECTORY_WORDS_LOOKED_AT,
        candidates: MAX_DIRECTORY_CANDIDATES,
        company: MAX_DIRECTORY_COMPANY,
        limit: limit + 1,
      })
      const results = found.slice(0, limit).map(({ user_id, display_name, avatar_url }) => ({
        user_id,
        ...(display_name !== null && { display_name }),
        ...(avatar_url !== null && { avatar_url }),
      }))
      return { results, limited: found.length > limit }
    },
  }
}
