/** Related events on one page, unless fewer are asked for, and at most. */
export const RELATIONS_PER_PAGE = 5
export const MAX_RELATIONS_PER_PAGE = 1_000
/** How far a recursive search follows relations, and how many it looks at. */
export const MAX_RELATION_DEPTH = 3
export const MAX_RELATIONS_SEARCHED = 50_000
/** Threads on one page, unless fewer are asked for, and at most. */
export const THREADS_PER_PAGE = 10
export const MAX_THREADS_PER_PAGE = 100
/** References that come with the event that they refer to. The others are read with `relations`. */
export const MAX_BUNDLED_REFERENCES = 100
/** Bytes of such events that are read for one answer: whether the reader may see them decides whether they are named. */
export const MAX_REFERENCES_READ_BYTES = 16 * 1024 * 1024
/** The newest events that are examined for each event of which a filter requires a relation. */
export const MAX_RELATIONS_FILTERED = 20
/** Characters of an annotation's key. */
export const MAX_ANNOTATION_KEY_CHARS = 500
/** Of a thread with at most so many replies, all who replied are remembered. Of others, whether each of the last readers did. */
export const MAX_REPLIES_READ = 256
