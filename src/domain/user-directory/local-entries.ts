import { wordsOfUser } from '../../core/user-words.ts'
import type { Tx } from '../../store/db/db.ts'
import {
  type DirectoryUser,
  type LocalProfile,
  localProfiles,
  putDirectoryUsers,
} from '../../store/user-directory/directory-users.ts'
import { MAX_WORDS_OF_USER } from '../limits/user-directory.ts'

/** Writes how local users are found: by their own profiles, never by the names that they have in rooms. */
export async function enterLocalUsers(tx: Tx, userNids: readonly number[]): Promise<void> {
  if (userNids.length === 0) return
  await putDirectoryUsers(tx, (await localProfiles(tx, { userNids })).map(localEntry))
}

export function localEntry({ user_nid, user_id, displayname, avatar_url }: LocalProfile): DirectoryUser {
  const displayName = textIn(displayname)
  const words = wordsOfUser(user_id, displayName, MAX_WORDS_OF_USER)
  return { userNid: user_nid, displayName, avatarUrl: textIn(avatar_url), eventNid: 0, words }
}

function textIn(json: string | null): string | undefined {
  const value: unknown = JSON.parse(json ?? 'null')
  return typeof value === 'string' ? value : undefined
}
