/** Limits on the trees of spaces. */

/** Rooms of a space that are examined, for one page of its hierarchy or for all pages. */
export const MAX_ROOMS_WALKED = 1_000
export const MAX_SPACE_PAGE = 50
/** How deep spaces within spaces are followed. */
export const MAX_SPACE_DEPTH = 10
/** Rooms of the tree that wait to be visited. Those that would come last are left out. */
export const MAX_ROOMS_TO_VISIT = 5_000
/** Children of one space that are read, to put them in order, and that are examined. */
export const MAX_SPACE_CHILDREN_READ = 5_000
export const MAX_SPACE_CHILDREN = 500
/** How many of those another server gets in an answer. */
export const MAX_SPACE_CHILDREN_SENT = 100
/** Characters of the child events of one space that are shown, and of the rooms on one page. One room is always shown. */
export const MAX_SPACE_CHILDREN_CHARS = 262_144
export const MAX_SPACE_PAGE_CHARS = 2_097_152
/** Rooms whose members may join a restricted room, of which is looked whether the user is in one. */
export const MAX_ALLOWED_ROOMS_TRIED = 50
/** Servers that are asked about one room of a space. */
export const MAX_SPACE_SERVERS_TRIED = 3
/** How long one page waits for rooms of other servers. Later answers go into the next page. */
export const MAX_SPACE_WAIT_MS = 10_000
/** Characters that are cached of another server's answer about a space, for some minutes. */
export const MAX_SPACE_ANSWER_CHARS = 262_144
