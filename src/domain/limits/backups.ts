/** Rows of one file of a backup, in bytes before they are compressed: read whole, and one transaction of a restore. */
export const BACKUP_PORTION_BYTES = 16 * 1024 * 1024
/** A portion holds whole rows, so that a long row makes it longer: by no more than Postgres allows a row of text. */
export const MAX_BACKUP_PORTION_BYTES = BACKUP_PORTION_BYTES + 1024 * 1024 * 1024
/** What a backup reads, compresses and writes at a time: a third of a millisecond's work, so that others wait no longer for a processor. */
export const BACKUP_PIECE_BYTES = 64 * 1024
/** Media files that are copied, or read back, at the same time. */
export const BACKUP_MEDIA_AT_ONCE = 4
/** How fast a backup reads while others work, in bytes of rows and media a second: 10 GB in seven minutes, with a quarter of one processor. */
export const BACKUP_BYTES_PER_SECOND = 24 * 1024 * 1024
/** Others work while more transactions than this are ended, as a server at rest ends some, too; and how often a backup looks. */
export const BACKUP_QUIET_TRANSACTIONS_PER_SECOND = 15
export const BACKUP_LOOK_EVERY_MS = 1_000
/** What is written is on the disk before more than this is written: the log of the database waits for the same disk. */
export const BACKUP_BYTES_PER_SYNC = 4 * 1024 * 1024
/** The manifest, the keys and the configuration of a backup, each. */
export const MAX_BACKUP_TEXT_BYTES = 64 * 1024 * 1024
/** Rooms that `backup verify` checks event by event. */
export const BACKUP_ROOMS_VERIFIED = 5
/** What a backup takes of the space of the tables, at most, in the estimate before it begins: rows without indexes, compressed. */
export const BACKUP_SHARE_OF_TABLES = 0.5
/** What a restore takes, at most, for each byte of the rows: rows, indexes, and the log of both. */
export const RESTORE_SHARE_OF_ROWS = 3

/** After a restore: servers of a room that are asked for lost events, users that they are asked about, and events that each may name. */
export const MAX_LOST_EVENT_SERVERS = 5
export const MAX_LOST_EVENT_USERS = 3
export const MAX_LOST_EVENT_TIPS = 20
/** An event of ours waits no longer than this for them. */
export const LOST_EVENTS_ASKED_MS = 15_000
/** Rooms that are asked about at a time beside those that users write in, and how often one is asked about before it is given up. */
export const LOST_EVENT_ROOMS_AT_ONCE = 4
export const MAX_LOST_EVENT_ATTEMPTS = 14

/** A journal beside the backups: the newest so many things that ended, and its bytes, expanded or not. */
export const MAX_JOURNAL_ENTRIES = 500_000
export const MAX_JOURNAL_BYTES = 400 * 1024 * 1024
/** How far before a backup its journal begins: longer than any transaction takes, and than clocks differ. */
export const JOURNAL_MARGIN_MS = 15 * 60_000
/** What ended is noted in the database for so long, and so many things. */
export const UNDONE_KEPT_MS = 40 * 24 * 3_600_000
export const MAX_UNDONE = 2_000_000

/** Copies of the files of the embedded Postgres that a place keeps: between the older and now a restore can go to any moment. */
export const BASES_KEPT = 2
/** A piece of the log of Postgres has 16 MiB. */
export const MAX_LOG_PIECE_BYTES = 32 * 1024 * 1024
/** What the files and the log of Postgres take at a restore to a moment, for each byte of the files. */
export const BASE_SHARE_OF_BYTES = 1.5
/** How long a backup waits until Postgres has put aside the last piece of its log. */
export const LOG_AWAITED_MS = 60_000
