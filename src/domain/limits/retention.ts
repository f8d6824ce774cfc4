/** How many rooms are searched in one go for messages whose lifetime is over, and how often all rooms are. */
export const ROOMS_SURVEYED_AT_ONCE = 200
export const RETENTION_ROUND_MS = 3_600_000
/** How many purges by age may wait at a time, so that those that operators ask for have their turn. */
export const MAX_PURGES_BY_AGE = 200
/** How long it is remembered which event was the newest at which time. */
export const ARRIVAL_MARKS_KEPT_MS = 2 * 365 * 24 * 3_600_000
