import { isEdit, relationOf } from '../../../core/event/relation.ts'
import type { EventId } from '../../../core/ids.ts'
import {
  NO_RELATIONS,
  type RelationBatch,
  type RelationRemoval,
  type RelationWrite,
  type ThreadRecount,
  type ThreadWrite,
} from '../../../store/events/relation-writes.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { streamed, type Unit } from './unit.ts'

export const THREAD = 'm.thread'

/** The relation of an event to another one, as a row; undefined if it has none, or no place in the timeline. */
export function relationWrite(event: RoomEvent): Omit<RelationWrite, 'hasChildren'> | undefined {
  if (!event.isInTimeline) return undefined
  const relation = relationOf(event.content)
  if (relation === undefined) return undefined
  return {
    roomNid: event.roomNid,
    targetId: relation.eventId,
    relType: relation.relType,
    pos: event.pos,
    childNid: event.nid,
    childId: event.id,
    childType: event.type,
    sender: event.sender,
    ts: event.ts,
    key: relation.key?.slice(0, MAX_STORED_KEY_CHARS) ?? null,
    isEdit: isEdit(event),
  }
}

/** What an annotation of another server may have beyond this is not kept. */
const MAX_STORED_KEY_CHARS = 500

/** The events to which the events of a unit relate. */
export function relationTargets(unit: Pick<Unit, 'events' | 'promoted'>): readonly EventId[] {
  return streamed(unit).flatMap((event) => relationWrite(event)?.targetId ?? [])
}

/**
 * The relations that these units write and remove.
 *
 * @param written the ids of the events whose rows the batch writes: these rows say themselves that the event has relations
 */
export function toRelationBatch(units: readonly Unit[], written: () => ReadonlySet<string>): RelationBatch {
  const redacted = new Set(units.flatMap(({ redactions }) => redactions.map(({ targetNid }) => targetNid)))
  const found = units.flatMap((unit) =>
    streamed(unit).flatMap((event) => (redacted.has(event.nid) ? [] : (relationWrite(event) ?? []))),
  )
  const related = new Set(found.map(({ targetId }) => targetId))
  const added = found.map((relation) => ({ ...relation, hasChildren: related.has(relation.childId) }))
  const removed = units.flatMap(({ redactions }) => redactions.flatMap(({ relation }) => relation ?? []))
  if (added.length + removed.length === 0) return NO_RELATIONS
  const already = written()
  const targets = new Map(added.map(({ roomNid, targetId }) => [`${roomNid} ${targetId}`, { roomNid, targetId }]))
  return {
    added,
    removed,
    ...threadsOf(added, removed),
    targets: [...targets.values()].filter(({ targetId }) => !already.has(targetId)),
  }
}

function threadsOf(
  added: readonly RelationWrite[],
  removed: readonly RelationRemoval[],
): Pick<RelationBatch, 'threads' | 'recounts'> {
  const threads = new Map<string, ThreadWrite & { readonly positions: number[] }>()
  const recounts = new Map<string, ThreadRecount & { readonly removed: number[] }>()
  const keyOf = ({ roomNid, targetId }: RelationRemoval) => `${roomNid} ${targetId}`
  for (const relation of removed) {
    if (relation.relType !== THREAD) continue
    const { roomNid, targetId, pos } = relation
    const recount = recounts.get(keyOf(relation)) ?? { roomNid, rootId: targetId, removed: [], added: [] }
    recount.removed.push(pos)
    recounts.set(keyOf(relation), recount)
  }
  for (const relation of added) {
    if (relation.relType !== THREAD) continue
    const { roomNid, targetId, pos } = relation
    const positions = [...(threads.get(keyOf(relation))?.positions ?? []), pos]
    const latestPos = Math.max(...positions)
    threads.set(keyOf(relation), { roomNid, rootId: targetId, latestPos, replies: positions.length, positions })
  }
  return {
    threads: [...threads].flatMap(([key, thread]) => (recounts.has(key) ? [] : [thread])),
    recounts: [...recounts].map(([key, recount]) => ({ ...recount, added: threads.get(key)?.positions ?? [] })),
  }
}
