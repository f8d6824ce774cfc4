import type { EventBatch, EventWrite, GapFilled, GapWrite } from '../../../store/events/event-writes.ts'
import type { Head } from '../room/head.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import { toRelationBatch } from './relation-batch.ts'
import { stickyWrites } from './sticky-events.ts'
import type { Unit } from './unit.ts'
import { toUnreadBatch } from './unread-batch.ts'

/**
 * Turns units into the batch that one statement writes. It moves each room's head once: from the first unit's head to the last unit's.
 * Later memberships win, and so does the first redaction.
 *
 * @param now in milliseconds
 */
export function toBatch(units: readonly Unit[], now: number): EventBatch {
  const first = new Map<Room, Head>()
  const final = new Map<Room, Head>()
  const members = new Map<string, MembershipChange & { roomNid: number }>()
  for (const unit of units) {
    if (!first.has(unit.room)) first.set(unit.room, unit.before)
    final.set(unit.room, unit.after)
    for (const change of unit.members)
      members.set(`${unit.room.nid} ${change.userNid}`, { ...change, roomNid: unit.room.nid })
  }
  return {
    heads: [...final].map(([room, head]) => ({
      roomNid: room.nid,
      roomId: room.id,
      roomVersion: room.version.id,
      expected: first.get(room)!.version,
      expectedNid: first.get(room)!.nid,
      version: head.version,
      extremities: head.extremities.map(({ nid }) => nid),
      merged: head.merged,
      depth: head.depth,
      lastPos: head.pos,
      lastNid: head.nid,
      notifiable: head.notifiable,
      stateChain: head.chain,
      stateSeq: head.seq,
    })),
    ...eventWrites(units),
    ...gapWrites(units),
    keys: units.flatMap((unit) => unit.keys),
    changes: units.flatMap(({ room, changes }) => changes.map((change) => ({ roomNid: room.nid, ...change }))),
    chains: units.flatMap((unit) => unit.chains),
    resynced: units.flatMap((unit) => unit.resynced),
    earlyRedactions: units.flatMap((unit) => unit.earlyRedactions),
    members: [...members.values()].map(({ after, ...member }) => ({ ...member, membership: after })),
    unread: toUnreadBatch(units),
    sticky: stickyWrites(units, now),
    txns: units.flatMap((unit) => (unit.txn ? [unit.txn] : [])),
  }
}

/** One statement cannot update a row that it inserts. A change to an event of the same batch goes into its row. */
function eventWrites(units: readonly Unit[]): Pick<EventBatch, 'events' | 'promoted' | 'redactions' | 'relations'> {
  const inserted = new Map<number, EventWrite>()
  const promoted = new Map<number, EventWrite>()
  const redactions = new Map<number, Unit['redactions'][number]>()
  for (const unit of units) {
    for (const event of unit.events) inserted.set(event.nid, event.toRow())
    for (const event of unit.promoted) (inserted.has(event.nid) ? inserted : promoted).set(event.nid, event.toRow())
    for (const write of unit.redactions) if (!redactions.has(write.targetNid)) redactions.set(write.targetNid, write)
  }
  for (const [targetNid, { redactionNid, json, authContent }] of redactions) {
    const rows = inserted.has(targetNid) ? inserted : promoted
    const row = rows.get(targetNid)
    if (row === undefined) continue
    // A redaction that came before its target was the first.
    if (row.redacted_by === null)
      rows.set(targetNid, { ...row, json, redacted_by: redactionNid, auth_content: authContent })
    redactions.delete(targetNid)
  }
  const relations = toRelationBatch(units, () => writtenIds(inserted, promoted, redactions.values()))
  if (relations.added.length > 0) {
    const targets = new Set(relations.added.map(({ targetId }) => targetId))
    for (const [nid, row] of inserted) if (targets.has(row.event_id)) inserted.set(nid, { ...row, has_relations: true })
  }
  return {
    events: [...inserted.values()],
    promoted: [...promoted.values()],
    redactions: [...redactions.values()],
    relations,
  }
}

/** The ids of the events whose rows the batch writes. */
function writtenIds(
  inserted: ReadonlyMap<number, EventWrite>,
  promoted: ReadonlyMap<number, EventWrite>,
  redactions: Iterable<Unit['redactions'][number]>,
): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const rows of [inserted, promoted]) for (const { event_id } of rows.values()) ids.add(event_id)
  for (const { event } of redactions) ids.add(event.id)
  return ids
}

/** A gap that the batch both opens and fills is never written. */
function gapWrites(units: readonly Unit[]): Pick<EventBatch, 'gaps' | 'filled'> {
  const gaps = new Map<string, GapWrite>()
  const filled: GapFilled[] = []
  for (const unit of units) {
    for (const gap of unit.filled) {
      filled.push(gap)
      for (const [key, { missingId, roomNid }] of gaps) {
        if (missingId === gap.missingId && roomNid === gap.roomNid) gaps.delete(key)
      }
    }
    for (const gap of unit.gaps) gaps.set(`${gap.eventNid} ${gap.missingId}`, gap)
  }
  return { gaps: [...gaps.values()], filled }
}
