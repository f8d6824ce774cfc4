import type { EventId, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: event_relation, thread, event

export interface RelationsQuery {
  readonly roomNid: number
  readonly targetId: EventId
  readonly relType: string | undefined
  readonly eventType: string | undefined
  /** Timeline positions: events with `after < pos <= upTo`. */
  readonly after: number
  readonly upTo: number
  readonly direction: 'b' | 'f'
  readonly limit: number
}

/** An event that relates to another one, directly or through others. */
export interface RelatedRow {
  readonly child_nid: number
  readonly pos: number
}

/** Each text has a plan of its own: with a type, and without one, an index gives the order. */
const chosen = ({ relType, eventType }: RelationsQuery): string =>
  `${relType === undefined ? '$3::text IS NULL' : 'rel_type = $3'} AND ${eventType === undefined ? '$4::text IS NULL' : 'child_type = $4'}`

const pageOf = (target: string, query: RelationsQuery): string =>
  `SELECT child_nid, pos FROM event_relation WHERE room_nid = $1 AND target_id = ${target} AND ${chosen(query)} AND pos > $5 AND pos <= $6
   ORDER BY pos ${query.direction === 'b' ? 'DESC' : 'ASC'} LIMIT $7`

/** A page of the events that relate to an event. */
export function getRelations(reader: Reader, query: RelationsQuery): Promise<RelatedRow[]> {
  const { roomNid, targetId, relType = null, eventType = null, after, upTo, limit } = query
  return reader.query<RelatedRow>(pageOf('$2', query), [roomNid, targetId, relType, eventType, after, upTo, limit])
}

/**
 * As `getRelations`, with the events that relate to these, and so on. Only those are followed that have relations themselves.
 *
 * @param depth how many relations are followed
 * @param most how many are followed, and found behind the first ones, at most
 */
export function getRelationsRecursively(
  reader: Reader,
  query: RelationsQuery,
  { depth, most }: { readonly depth: number; readonly most: number },
): Promise<RelatedRow[]> {
  const { roomNid, targetId, relType = null, eventType = null, after, upTo, direction, limit } = query
  const parentsOf = (target: string) =>
    `event_relation WHERE room_nid = $1 AND target_id = ${target} AND has_children AND ${chosen(query)}`
  return reader.query<RelatedRow>(
    `WITH RECURSIVE parent AS (
       SELECT child_id, 1 AS depth FROM ${parentsOf('$2')}
       UNION ALL
       SELECT next.child_id, parent.depth + 1 FROM parent CROSS JOIN LATERAL (SELECT child_id FROM ${parentsOf('parent.child_id')}) AS next
       WHERE parent.depth < $8 - 1
     ), nearest AS (SELECT DISTINCT child_id FROM (SELECT child_id FROM parent LIMIT $9) AS first)
     SELECT DISTINCT child_nid, pos FROM (
       (${pageOf('$2', query)})
       UNION ALL
       (SELECT page.child_nid, page.pos FROM nearest CROSS JOIN LATERAL (${pageOf('nearest.child_id', query)}) AS page LIMIT $9)
     ) AS found ORDER BY pos ${direction === 'b' ? 'DESC' : 'ASC'} LIMIT $7`,
    [roomNid, targetId, relType, eventType, after, upTo, limit, depth, most],
  )
}

/** An event whose aggregations are wanted. */
export interface Aggregated {
  readonly id: EventId
  /** Who may edit it; empty if nobody may. */
  readonly editor: UserId | ''
  readonly type: string
  /** Whether it may be the root of a thread. */
  readonly mayBeRoot: boolean
}

/** One child event that an aggregation shows. */
export interface AggregatedRow {
  readonly target_id: EventId
  readonly kind: 'm.replace' | 'm.thread' | 'm.reference'
  readonly child_nid: number
  /** Of a thread: its number of replies, and whether the reader sent one. */
  readonly replies: number | null
  readonly participated: boolean | null
}

/**
 * What is shown with events: the newest edit, the newest reply of a thread, the first references.
 *
 * @param upTo the reader sees no event after this timeline position
 */
export function getAggregations(
  reader: Reader,
  roomNid: number,
  events: readonly Aggregated[],
  {
    userId,
    upTo,
    references,
    ignored,
  }: {
    readonly userId: UserId
    readonly upTo: number
    readonly references: number
    /** Users whose events the reader is not shown. */
    readonly ignored: readonly string[]
  },
): Promise<AggregatedRow[]> {
  return reader.query<AggregatedRow>(
    `WITH target AS (SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::boolean[]) AS t (id, editor, type, may_be_root))
     SELECT target.id AS target_id, 'm.replace' AS kind, edit.child_nid, NULL::int AS replies, NULL::boolean AS participated
     FROM target CROSS JOIN LATERAL (
       SELECT child_nid FROM event_relation
       WHERE room_nid = $1 AND target_id = target.id AND sender = target.editor AND rel_type = 'm.replace' AND is_edit
         AND child_type = target.type AND pos <= $7 ORDER BY ts DESC, child_id DESC LIMIT 1) AS edit
     UNION ALL
     SELECT target.id, 'm.thread', latest.child_nid,
       CASE WHEN thread.latest_pos <= $7 AND cardinality($9::text[]) = 0 THEN thread.replies ELSE (SELECT count(*)::int FROM event_relation
         WHERE room_nid = $1 AND target_id = target.id AND rel_type = 'm.thread' AND pos <= $7 AND sender NOT IN (SELECT unnest($9::text[]))) END,
       EXISTS (SELECT FROM event_relation WHERE room_nid = $1 AND target_id = target.id AND sender = $6 AND rel_type = 'm.thread' AND pos <= $7)
     FROM target JOIN thread ON thread.room_nid = $1 AND thread.root_id = target.id CROSS JOIN LATERAL (
       SELECT child_nid FROM event_relation
       WHERE room_nid = $1 AND target_id = target.id AND rel_type = 'm.thread' AND pos <= $7 AND sender NOT IN (SELECT unnest($9::text[]))
       ORDER BY pos DESC LIMIT 1) AS latest
     WHERE target.may_be_root AND thread.latest_pos IS NOT NULL
     UNION ALL
     SELECT target.id, 'm.reference', reference.child_nid, NULL, NULL FROM target CROSS JOIN LATERAL (
       SELECT child_nid FROM event_relation
       WHERE room_nid = $1 AND target_id = target.id AND rel_type = 'm.reference' AND pos <= $7 AND sender NOT IN (SELECT unnest($9::text[]))
       ORDER BY pos LIMIT $8) AS reference`,
    [
      roomNid,
      events.map(({ id }) => id),
      events.map(({ editor }) => editor),
      events.map(({ type }) => type),
      events.map(({ mayBeRoot }) => mayBeRoot),
      userId,
      upTo,
      references,
      ignored,
    ],
  )
}

/** Those of some threads in which a user has replied. */
export async function threadsRepliedIn(
  reader: Reader,
  roomNid: number,
  rootIds: readonly EventId[],
  userId: UserId,
): Promise<Set<EventId>> {
  const rows = await reader.query<{ root_id: EventId }>(
    `SELECT root_id FROM unnest($2::text[]) AS thread (root_id) WHERE EXISTS (SELECT FROM event_relation
       WHERE room_nid = $1 AND target_id = root_id AND sender = $3 AND rel_type = 'm.thread')`,
    [roomNid, rootIds, userId],
  )
  return new Set(rows.map(({ root_id }) => root_id))
}

/** Who has replied in some threads: of each, only what the first so many replies say. */
export async function firstRepliers(
  reader: Reader,
  roomNid: number,
  rootIds: readonly EventId[],
  replies: number,
): Promise<{ readonly root_id: EventId; readonly senders: readonly UserId[] }[]> {
  return reader.query(
    `SELECT root_id, ARRAY(SELECT DISTINCT sender FROM (SELECT sender FROM event_relation
       WHERE room_nid = $1 AND target_id = root_id AND rel_type = 'm.thread' ORDER BY pos LIMIT $3) AS reply) AS senders
     FROM unnest($2::text[]) AS thread (root_id)`,
    [roomNid, rootIds, replies],
  )
}

export interface ThreadRow {
  readonly root_id: EventId
  readonly latest_pos: number
}

export interface ThreadsQuery {
  /** Threads whose newest reply is at a timeline position of at most this. */
  readonly upTo: number
  /** The reader sees no reply after this position; undefined for one who sees the newest. */
  readonly seesUpTo: number | undefined
  readonly limit: number
  readonly by: ThreadParticipant | undefined
}

/** A room's threads, the one with the newest reply first. */
export function getThreads(reader: Reader, roomNid: number, query: ThreadsQuery): Promise<ThreadRow[]> {
  const { upTo, seesUpTo, limit, by } = query
  const values: unknown[] = [roomNid, upTo, limit]
  const bind = (value: unknown) => `$${values.push(value)}`
  const threads =
    seesUpTo === undefined
      ? 'thread'
      : `(SELECT room_nid, root_id, (SELECT max(pos) FROM event_relation r WHERE r.room_nid = thread.room_nid AND r.target_id = root_id
           AND r.rel_type = 'm.thread' AND r.pos <= ${bind(seesUpTo)}) AS latest_pos FROM thread WHERE room_nid = $1)`
  const participated = by
    ? `AND (EXISTS (SELECT FROM event_relation r
         WHERE r.room_nid = $1 AND r.target_id = root_id AND r.sender = ${bind(by.userId)} AND r.rel_type = 'm.thread')
       OR EXISTS (SELECT FROM event WHERE event_id = root_id AND sender_nid = ${bind(by.userNid)}))`
    : ''
  return reader.query<ThreadRow>(
    `SELECT root_id, latest_pos FROM ${threads} AS t WHERE room_nid = $1 AND latest_pos <= $2 ${participated}
     ORDER BY latest_pos DESC LIMIT $3`,
    values,
  )
}

/** Only threads of which this user sent the root or a reply. */
export interface ThreadParticipant {
  readonly userId: UserId
  readonly userNid: number
}

/** Those of the newest relations to each of these events that have one of the types and one of the senders. */
export function getRelating(
  reader: Reader,
  roomNid: number,
  targetIds: readonly EventId[],
  wish: {
    readonly relTypes: readonly string[] | undefined
    readonly senders: readonly string[] | undefined
    readonly atMost: number
  },
): Promise<{ readonly target_id: EventId; readonly child_nid: number }[]> {
  return reader.query(
    `SELECT target_id, child_nid FROM unnest($2::text[]) AS target (target_id) CROSS JOIN LATERAL (
       SELECT child_nid FROM event_relation r WHERE r.room_nid = $1 AND r.target_id = target.target_id
         AND ($3::text[] IS NULL OR rel_type = ANY ($3)) AND ($4::text[] IS NULL OR sender = ANY ($4))
       ORDER BY pos DESC LIMIT $5) AS child`,
    [roomNid, targetIds, wish.relTypes ?? null, wish.senders ?? null, wish.atMost],
  )
}

/** Whether any event of a room relates to an event, which need not be known. */
export async function hasRelation(reader: Reader, roomNid: number, targetId: EventId): Promise<boolean> {
  const rows = await reader.query(
    'SELECT 1 AS one FROM event_relation WHERE room_nid = $1 AND target_id = $2 LIMIT 1',
    [roomNid, targetId],
  )
  return rows.length > 0
}

/** Whether a user has annotated an event with a key by an event of this type. */
export async function hasAnnotated(
  reader: Reader,
  annotation: {
    readonly roomNid: number
    readonly targetId: EventId
    readonly sender: UserId
    readonly type: string
    readonly key: string
  },
): Promise<boolean> {
  const { roomNid, targetId, sender, type, key } = annotation
  const rows = await reader.query(
    `SELECT 1 AS one FROM event_relation WHERE room_nid = $1 AND target_id = $2 AND sender = $3 AND rel_type = 'm.annotation'
       AND key = $4 AND child_type = $5 LIMIT 1`,
    [roomNid, targetId, sender, key, type],
  )
  return rows.length > 0
}
