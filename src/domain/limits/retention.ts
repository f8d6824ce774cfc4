/** Rooms looked at in one go for messages whose time is over, and how often all rooms are. */
export const ROOMS_SURVEYED_AT_ONCE = 200
export const RETENTION_ROUND_MS = 3_600_000
/** Purges that wait at the same time, so that those that operators ask for have their turn. */
export const MAX_PURGES_BY_AGE = 200
/** For how long is kept which event was the newest at a time. */
export const ARRIVAL_MARKS_KEPT_MS = 2 * 365 * 24 * 3_600_000
