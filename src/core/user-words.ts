import { localpartOf, type UserId } from './ids.ts'
import { folded, wordsOf } from './search-words.ts'

const MAX_WORD_CHARS = 50

/** The words by which a user is found: the whole localpart, its parts, and those of the display name. */
export function wordsOfUser(id: UserId, displayName: string | undefined, most: number): string[] {
  const localpart = folded(localpartOf(id))
  return [...new Set([localpart.slice(0, MAX_WORD_CHARS), ...wordsOf(localpart), ...wordsOf(displayName ?? '')])]
    .filter((word) => word !== '' && !word.includes('\0'))
    .slice(0, most)
}

/** What a search term asks for. */
export interface UserTerm {
  /** All of them begin words of the user. None: nobody is found. */
  readonly words: readonly string[]
  /** How the user's server begins, if the term is a user id. */
  readonly server: string | undefined
}

/** Reads a search term: words, or a user id or its beginning. */
export function userTermOf(term: string, most: number): UserTerm {
  const id = /^\s*@([^\s:]+)(?::(\S*))?\s*$/.exec(term)
  if (id !== null) {
    const word = folded(id[1]!).slice(0, MAX_WORD_CHARS)
    return {
      words: word === '' || word.includes('\0') ? [] : [word],
      server: (id[2] ?? '').toLowerCase().replaceAll('\0', ''),
    }
  }
  const plain = folded(term).trim()
  // A localpart may hold characters that end words.
  const whole = /^[a-z0-9._=/+-]+$/.test(plain) ? [plain.slice(0, MAX_WORD_CHARS)] : wordsOf(plain)
  return { words: whole.slice(0, most), server: undefined }
}
