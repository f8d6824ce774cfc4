/** Limits on letters about logins on new devices. */

/** The first device of an account that is younger than this is not news to its owner. */
export const NEW_ACCOUNT_MS = 60 * 60 * 1000
/** The least time between two letters to one person: at most four an hour. */
export const LETTER_PAUSE_MS = 15 * 60 * 1000
/** Logins of one person that are noted at a time, and that a letter names. */
export const MAX_NEW_LOGINS = 100
export const MAX_LOGINS_IN_LETTER = 10
/** Addresses of one person that a letter goes to, the oldest first. */
export const MAX_LETTER_ADDRESSES = 3
/** Letters that are sent at a time. */
export const MAX_LETTERS_AT_ONCE = 4
/** The characters of a device's name in a letter. Whoever logs in chooses it. */
export const MAX_LETTER_NAME_CHARS = 60
/** A letter that cannot be sent is tried again after a pause, and given up after so long. */
export const FIRST_LETTER_RETRY_MS = 60_000
export const LONGEST_LETTER_RETRY_MS = 60 * 60 * 1000
export const LETTER_GIVEN_UP_AFTER_MS = 24 * 60 * 60 * 1000
