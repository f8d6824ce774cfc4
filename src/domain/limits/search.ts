/** Characters of a search term, and words that are looked for. */
export const MAX_SEARCH_TERM_CHARS = 1_000
export const MAX_SEARCH_WORDS = 32
/** Results on a page, unless fewer are asked for, and at most. */
export const SEARCH_RESULTS_PER_PAGE = 10
export const MAX_SEARCH_RESULTS_PER_PAGE = 50
/** The newest matches that are ranked. */
export const MAX_RANKED_MATCHES = 500
/** Matches that are read for one page: some may be hidden from the reader. */
export const MAX_SEARCH_MATCHES_READ = 500
/** Events before and after a result, unless fewer are asked for, and at most. */
export const SEARCH_CONTEXT = 5
export const MAX_SEARCH_CONTEXT = 20
/** Up to so many rooms are looked up in the index; with more, rooms are compared after it. */
export const MAX_ROOMS_IN_SEARCH_INDEX = 64
/** Events that are looked at in one go, and how many may wait in memory. If more wait, they are read from the database. */
export const SEARCH_BATCH = 100
/** What is read from the database is indexed in one transaction for so many reads, fewer on a busy server, or about so many characters of words. */
export const SEARCH_SLICES = 20
export const SEARCH_SLICES_WHILE_NEEDED = 4
export const SEARCH_SLICES_CHARS = 1024 * 1024
export const MAX_UNINDEXED_EVENTS = 20_000
/** How far back of its position the index looks again after a start: numbers are not quite in the order of commits. */
export const SEARCH_OVERLAP = 2_000
/** Searches whose words are known to be frequent, and the longest of them. */
export const MAX_FREQUENT_SEARCHES = 1_000
export const MAX_FREQUENT_SEARCH_CHARS = 200
