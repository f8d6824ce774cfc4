/** Results of a search for users, unless fewer are asked for, and at most. */
export const DIRECTORY_RESULTS = 10
export const MAX_DIRECTORY_RESULTS = 50
/** Characters of a search term; what is longer is cut off. */
export const MAX_DIRECTORY_TERM_CHARS = 300
/** Words that are looked for, and words by which one user is found. */
export const MAX_DIRECTORY_TERM_WORDS = 8
export const MAX_WORDS_OF_USER = 20
/**
 * Words that begin as searched, of which the first are looked at, and the users whose words are compared. If there are more words than
 * users, so many people in rooms with the searcher are looked at as well.
 */
export const MAX_DIRECTORY_WORDS_LOOKED_AT = 1_000
export const MAX_DIRECTORY_CANDIDATES = 300
export const MAX_DIRECTORY_COMPANY = 1_000
/** Events that are looked at in one transaction, and how many may wait in memory. If more wait, they are read from the database. */
export const DIRECTORY_BATCH = 200
export const MAX_WAITING_DIRECTORY_EVENTS = 20_000
/** How far back of its position the directory looks again after a start: numbers are not quite in the order of commits. */
export const DIRECTORY_OVERLAP = 2_000
