import type { EventId, UserId } from '../../core/ids.ts'
import type { Column, Parameters } from '../db/parameters.ts'

// Tables: event_relation, thread, event

/** An event that relates to another one. */
export interface RelationWrite {
  readonly roomNid: number
  readonly targetId: EventId
  readonly relType: string
  /** Its own place in the timeline. */
  readonly pos: number
  readonly childNid: number
  readonly childId: EventId
  readonly childType: string
  readonly sender: UserId
  readonly ts: number
  readonly key: string | null
  readonly isEdit: boolean
  /** Whether an event of the same batch relates to it. */
  readonly hasChildren: boolean
}

/** A relation that a redaction takes away. */
export type RelationRemoval = Pick<RelationWrite, 'roomNid' | 'targetId' | 'relType' | 'pos'>

/** New replies in a thread from which none is removed. */
export interface ThreadWrite {
  readonly roomNid: number
  readonly rootId: EventId
  /** The position of the newest. */
  readonly latestPos: number
  readonly replies: number
}

/** A thread from which replies are removed. It is counted anew. */
export interface ThreadRecount {
  readonly roomNid: number
  readonly rootId: EventId
  /** Positions. */
  readonly removed: readonly number[]
  readonly added: readonly number[]
}

/** What a batch changes about relations. */
export interface RelationBatch {
  readonly added: readonly RelationWrite[]
  readonly removed: readonly RelationRemoval[]
  readonly threads: readonly ThreadWrite[]
  readonly recounts: readonly ThreadRecount[]
  /** The events that now have relations, without those that this batch writes for another reason. */
  readonly targets: readonly Pick<RelationWrite, 'roomNid' | 'targetId'>[]
}

export const NO_RELATIONS: RelationBatch = { added: [], removed: [], threads: [], recounts: [], targets: [] }

const TARGET: readonly Column<Pick<RelationWrite, 'roomNid' | 'targetId'>>[] = [
  ['room_nid', 'bigint', (relation) => relation.roomNid],
  ['target_id', 'text', (relation) => relation.targetId],
]

const PLACE: readonly Column<RelationRemoval>[] = [
  ...TARGET,
  ['rel_type', 'text', (relation) => relation.relType],
  ['pos', 'bigint', (relation) => relation.pos],
]

const RELATION: readonly Column<RelationWrite>[] = [
  ...PLACE,
  ['child_nid', 'bigint', (relation) => relation.childNid],
  ['child_id', 'text', (relation) => relation.childId],
  ['child_type', 'text', (relation) => relation.childType],
  ['sender', 'text', (relation) => relation.sender],
  ['ts', 'bigint', (relation) => relation.ts],
  ['key', 'text', (relation) => relation.key],
  ['is_edit', 'boolean', (relation) => relation.isEdit],
]

const IN_BATCH: Column<RelationWrite> = ['in_batch', 'boolean', (relation) => relation.hasChildren]

const THREAD: readonly Column<ThreadWrite>[] = [
  ['room_nid', 'bigint', (thread) => thread.roomNid],
  ['root_id', 'text', (thread) => thread.rootId],
  ['latest_pos', 'bigint', (thread) => thread.latestPos],
  ['replies', 'int', (thread) => thread.replies],
]

const RECOUNT: readonly Column<ThreadRecount>[] = [
  ['room_nid', 'bigint', (thread) => thread.roomNid],
  ['root_id', 'text', (thread) => thread.rootId],
  ['removed', 'text', (thread) => `{${thread.removed.join(',')}}`],
  ['added', 'text', (thread) => `{${thread.added.join(',')}}`],
]

const IN_ADVANCED = 'room_nid IN (SELECT room_nid FROM advanced)'

/** The parts of a batch's statement that write relations; none without any. */
export function relationParts(p: Parameters, relations: RelationBatch): string[] {
  const { added, removed, threads, recounts, targets } = relations
  return [
    ...(added.length > 0 ? [insertRelations(p, added)] : []),
    ...(removed.length > 0 ? deleteRelations(p, removed) : []),
    ...(targets.length > 0 ? markTargets(p, targets, removed.length > 0) : []),
    ...(threads.length > 0 ? [moveThreads(p, threads)] : []),
    ...(recounts.length > 0 ? [recountThreads(p, recounts)] : []),
  ]
}

/** What relates to an event may have come before it. */
function insertRelations(p: Parameters, added: readonly RelationWrite[]): string {
  const names = RELATION.map(([name]) => name).join(', ')
  return `related AS (INSERT INTO event_relation (${names}, has_children)
    SELECT ${names}, in_batch OR EXISTS (SELECT FROM event_relation c WHERE c.room_nid = n.room_nid AND c.target_id = n.child_id)
    FROM ${p.table(added, 'n', [...RELATION, IN_BATCH])} WHERE n.${IN_ADVANCED})`
}

/** Nothing may be changed and removed by one statement. */
function markTargets(p: Parameters, targets: RelationBatch['targets'], areSomeRemoved: boolean): string[] {
  const stays = 'NOT EXISTS (SELECT FROM removed_relation d WHERE d.room_nid = r.room_nid AND d.pos = r.pos)'
  return [
    `related_to AS (SELECT e.event_nid, e.room_nid, e.room_pos, e.has_relations FROM ${p.table(targets, 't', TARGET)}
      JOIN event e ON e.event_id = t.target_id AND e.room_nid = t.room_nid WHERE t.${IN_ADVANCED})`,
    `marked AS (UPDATE event SET has_relations = true FROM related_to t WHERE event.event_nid = t.event_nid AND NOT t.has_relations)`,
    `parents AS (UPDATE event_relation r SET has_children = true FROM related_to t
      WHERE r.room_nid = t.room_nid AND r.pos = t.room_pos AND NOT r.has_children ${areSomeRemoved ? `AND ${stays}` : ''})`,
  ]
}

function moveThreads(p: Parameters, threads: readonly ThreadWrite[]): string {
  return `threaded AS (INSERT INTO thread (room_nid, root_id, latest_pos, replies)
    SELECT room_nid, root_id, latest_pos, replies FROM ${p.table(threads, 'n', THREAD)} WHERE n.${IN_ADVANCED}
    ON CONFLICT (room_nid, root_id) DO UPDATE
    SET latest_pos = greatest(thread.latest_pos, EXCLUDED.latest_pos), replies = thread.replies + EXCLUDED.replies)`
}

function deleteRelations(p: Parameters, removed: readonly RelationRemoval[]): string[] {
  return [
    `removed_relation AS (SELECT * FROM ${p.table(removed, 'd', PLACE)} WHERE d.${IN_ADVANCED})`,
    `unrelated AS (DELETE FROM event_relation r USING removed_relation d
      WHERE r.room_nid = d.room_nid AND r.target_id = d.target_id AND r.rel_type = d.rel_type AND r.pos = d.pos)`,
  ]
}

/** The statement sees the replies as they were before it. */
function recountThreads(p: Parameters, recounts: readonly ThreadRecount[]): string {
  return `recounted AS (INSERT INTO thread (room_nid, root_id, latest_pos, replies)
    SELECT c.room_nid, c.root_id, now.latest_pos, now.replies FROM ${p.table(recounts, 'c', RECOUNT)}
    CROSS JOIN LATERAL (SELECT max(pos) AS latest_pos, count(pos)::int AS replies FROM (
      SELECT r.pos FROM event_relation r
      WHERE r.room_nid = c.room_nid AND r.target_id = c.root_id AND r.rel_type = 'm.thread' AND r.pos <> ALL (c.removed::bigint[])
      UNION ALL SELECT unnest(c.added::bigint[])) AS live) AS now
    WHERE c.${IN_ADVANCED}
    ON CONFLICT (room_nid, root_id) DO UPDATE SET latest_pos = EXCLUDED.latest_pos, replies = EXCLUDED.replies)`
}
