/** Limits on mails about unread messages. */

/** How long something must be unread, and its user read nothing at all, before a mail says so. */
export const MAIL_AFTER_MS = 10 * 60 * 1000
/** The least time between two mails to one address: it doubles with each mail until the user reads something. */
export const FIRST_MAIL_PAUSE_MS = 20 * 60 * 1000
export const LONGEST_MAIL_PAUSE_MS = 24 * 60 * 60 * 1000
/** A mail that cannot be sent for this long is given up. */
export const MAIL_GIVEN_UP_AFTER_MS = 24 * 60 * 60 * 1000
/** Mails that are made at a time. */
export const MAX_MAILS_AT_ONCE = 4
/** Rooms that a mail shows, messages of each room, and characters of a message and of a name. */
export const MAX_ROOMS_IN_MAIL = 10
export const MAX_MESSAGES_IN_MAIL = 5
export const MAX_MAIL_TEXT_CHARS = 500
export const MAX_MAIL_NAME_CHARS = 100
/** Unread events that are examined for one mail. */
export const MAX_EVENTS_FOR_MAIL = 2_000
