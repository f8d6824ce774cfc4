/** Limits on the list of a user's notifications. */

/** Notifications in one answer. */
export const MAX_NOTIFICATIONS = 500
/** Events whose rules are asked for one answer. */
export const MAX_EVENTS_EVALUATED_FOR_NOTIFICATIONS = 2_000
/** The newest events of each room that are looked at; fewer if the user is in many rooms, so that it is this many in all. */
export const MAX_NOTIFICATION_EVENTS_PER_ROOM = 2_000
export const MIN_NOTIFICATION_EVENTS_PER_ROOM = 20
export const MAX_NOTIFICATION_EVENTS = 20_000
