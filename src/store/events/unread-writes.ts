import type { Column, Parameters } from '../db/parameters.ts'

// Tables: thread_event, unread_thread, uncounted_event, unread_event, counted_from

/** A new event in a thread. */
export interface ThreadEventWrite {
  readonly roomNid: number
  readonly pos: number
  readonly rootId: string
  readonly senderNid: number
  /** Whether it counts as unread for all who have the default rules. */
  readonly counts: boolean
}

/** An event that is something else to a user than to all. */
export interface UnreadEventWrite extends Omit<ThreadEventWrite, 'senderNid'> {
  readonly userNid: number
  readonly notifies: boolean
  readonly highlights: boolean
}

/** An event of the timeline that is redacted. */
export interface RedactedPlace {
  readonly roomNid: number
  readonly pos: number
  /** Whether it counted as unread. */
  readonly counted: boolean
  /** Whether it is surely in no thread. */
  readonly isInMain: boolean
}

/** What a batch changes about unread counts. */
export interface UnreadBatch {
  readonly threads: readonly ThreadEventWrite[]
  readonly noticed: readonly UnreadEventWrite[]
  /** Without events of this batch that are in a thread. */
  readonly redacted: readonly RedactedPlace[]
  /** Users who left a room. */
  readonly left: readonly { readonly userNid: number; readonly roomNid: number }[]
}

export const NO_UNREAD: UnreadBatch = { threads: [], noticed: [], redacted: [], left: [] }

const IN_ADVANCED = 'room_nid IN (SELECT room_nid FROM advanced)'

const bit = (value: boolean): number => (value ? 1 : 0)

const THREAD_EVENT: readonly Column<ThreadEventWrite>[] = [
  ['room_nid', 'bigint', (event) => event.roomNid],
  ['room_pos', 'bigint', (event) => event.pos],
  ['root_id', 'text', (event) => event.rootId],
  ['sender_nid', 'bigint', (event) => event.senderNid],
  ['counts', 'int', (event) => bit(event.counts)],
]

const UNREAD_EVENT: readonly Column<UnreadEventWrite>[] = [
  ['user_nid', 'bigint', (event) => event.userNid],
  ['room_nid', 'bigint', (event) => event.roomNid],
  ['room_pos', 'bigint', (event) => event.pos],
  ['root_id', 'text', (event) => event.rootId],
  ['notifies', 'int', (event) => bit(event.notifies)],
  ['highlights', 'int', (event) => bit(event.highlights)],
  ['counts', 'int', (event) => bit(event.counts)],
]

const REDACTED: readonly Column<RedactedPlace>[] = [
  ['room_nid', 'bigint', (event) => event.roomNid],
  ['room_pos', 'bigint', (event) => event.pos],
  ['counted', 'int', (event) => bit(event.counted)],
]

const LEFT: readonly Column<UnreadBatch['left'][number]>[] = [
  ['user_nid', 'bigint', (member) => member.userNid],
  ['room_nid', 'bigint', (member) => member.roomNid],
]

/** The parts of a batch's statement that keep unread counts; none for plain messages. */
export function unreadParts(p: Parameters, { threads, noticed, redacted, left }: UnreadBatch): string[] {
  return [
    ...(threads.length > 0 ? insertThreads(p, threads) : []),
    ...(noticed.length > 0 ? [insertNoticed(p, noticed)] : []),
    ...(redacted.length > 0 ? uncount(p, redacted) : []),
    ...(left.length > 0 ? forget(p, left) : []),
  ]
}

function insertThreads(p: Parameters, threads: readonly ThreadEventWrite[]): string[] {
  const names = THREAD_EVENT.map(([name]) => name).join(', ')
  return [
    `in_thread AS (SELECT * FROM ${p.table(threads, 'n', THREAD_EVENT)} WHERE n.${IN_ADVANCED})`,
    `in_thread_now AS (INSERT INTO thread_event (${names}) SELECT ${names} FROM in_thread)`,
    `thread_newest AS (INSERT INTO unread_thread (room_nid, root_id, last_pos)
       SELECT room_nid, root_id, max(room_pos) FROM in_thread WHERE counts = 1 GROUP BY room_nid, root_id
       ON CONFLICT (room_nid, root_id) DO UPDATE SET last_pos = EXCLUDED.last_pos)`,
  ]
}

function insertNoticed(p: Parameters, noticed: readonly UnreadEventWrite[]): string {
  const names = UNREAD_EVENT.map(([name]) => name).join(', ')
  return `noticed AS (INSERT INTO unread_event (${names})
    SELECT ${names} FROM ${p.table(noticed, 'n', UNREAD_EVENT)} WHERE n.${IN_ADVANCED})`
}

/** The statement sees the threads as they were before it. */
function uncount(p: Parameters, redacted: readonly RedactedPlace[]): string[] {
  const isThat = (alias: string) => `${alias}.room_nid = d.room_nid AND ${alias}.room_pos = d.room_pos`
  return [
    `dropped AS (SELECT * FROM ${p.table(redacted, 'n', REDACTED)} WHERE n.${IN_ADVANCED})`,
    `uncounted_in_thread AS (UPDATE thread_event t SET counts = 0 FROM dropped d WHERE ${isThat('t')} AND t.counts = 1)`,
    `uncounted AS (INSERT INTO uncounted_event (room_nid, room_pos) SELECT room_nid, room_pos FROM dropped d
       WHERE counted = 1 AND NOT EXISTS (SELECT FROM thread_event t WHERE ${isThat('t')}) ON CONFLICT DO NOTHING)`,
    `unnoticed AS (DELETE FROM unread_event u USING dropped d WHERE ${isThat('u')})`,
  ]
}

function forget(p: Parameters, left: UnreadBatch['left']): string[] {
  const deleteFrom = (table: string) =>
    `DELETE FROM ${table} u USING gone_members g WHERE u.user_nid = g.user_nid AND u.room_nid = g.room_nid`
  return [
    `gone_members AS (SELECT * FROM ${p.table(left, 'n', LEFT)} WHERE n.${IN_ADVANCED})`,
    `gone_noticed AS (${deleteFrom('unread_event')})`,
    `gone_floors AS (${deleteFrom('counted_from')})`,
  ]
}
