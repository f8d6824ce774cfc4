/** Limits on room upgrades. */

/** Creators beside the user who upgrades. All of them stand in the create event, which never gets smaller. */
export const MAX_ADDITIONAL_CREATORS = 200

/** Bytes of the content of a new room's create event: the event must fit into its 64 KiB. */
export const MAX_CREATION_BYTES = 60 * 1024

/** State events that are copied into a new room in one commit: bans, and the children of a space. */
export const COPIED_EVENTS_PER_COMMIT = 200

/** Users whose settings are looked for at a time, and users whose settings are copied at the same time. */
export const SETTINGS_LOOKED_FOR_AT_ONCE = 500
export const SETTINGS_COPIED_AT_ONCE = 8
