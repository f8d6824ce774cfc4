import { type EventReference, type Pdu, referencedId } from '../../core/event/format.ts'
import { parseExact } from '../../core/large-integers.ts'
import { forEachState } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { type EventRow, getEvents, getEventsById } from '../../store/events/events.ts'
import { getStateKeys, loadState } from '../../store/events/state.ts'
import { entry } from '../report-entry.ts'

export type EventReport = Awaited<ReturnType<typeof describeEvent>>

export async function describeEvent(reader: Reader, roomNid: number, eventId: string, withState: boolean) {
  const [row] = await getEventsById(reader, [eventId])
  if (row?.room_nid !== roomNid) throw new Error(`there is no event ${eventId} in this room`)
  const pdu = parseExact(row.json) as Pdu
  const redactedBy = row.redacted_by === null ? undefined : (await getEvents(reader, [row.redacted_by]))[0]?.event_id
  return {
    event_id: row.event_id,
    type: row.type,
    ...(pdu.state_key === undefined ? {} : { state_key: pdu.state_key }),
    sender: pdu.sender,
    sent: new Date(row.origin_server_ts).toISOString(),
    depth: pdu.depth,
    standing: row.standing ?? 'accepted',
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(redactedBy === undefined ? {} : { redacted_by: redactedBy }),
    place_in_timeline: row.room_pos,
    prev_events: await describeReferences(reader, pdu.prev_events),
    auth_events: await describeReferences(reader, pdu.auth_events),
    ...(row.standing === 'outlier' || row.state_chain < 0
      ? {}
      : { state_before: await stateBefore(reader, row, withState) }),
  }
}

async function describeReferences(reader: Reader, references: readonly EventReference[]) {
  const ids = references.map(referencedId)
  const rows = new Map((await getEventsById(reader, ids)).map((row) => [row.event_id, row]))
  return ids.map((id) => {
    const row = rows.get(id)
    return { event_id: id, type: row?.type, standing: row ? (row.standing ?? 'accepted') : 'missing' }
  })
}

async function stateBefore(reader: Reader, row: EventRow, withEntries: boolean) {
  const point = { chain: row.state_chain, seq: row.state_seq }
  const state = await loadState(reader, row.room_nid, point)
  const summary = { at: `${point.chain}:${point.seq}`, entries: state.size }
  if (!withEntries) return summary
  const keys = (await getStateKeys(reader, [row.room_nid])).get(row.room_nid) ?? []
  const names = new Map(keys.map((key) => [key.key_id, key]))
  const nids = new Map<number, number>()
  forEachState(state, (keyId, nid) => nids.set(keyId, nid))
  const ids = new Map((await getEvents(reader, [...nids.values()])).map((event) => [event.event_nid, event.event_id]))
  const events = [...nids].map(([keyId, nid]) => {
    const { type, state_key } = names.get(keyId)!
    return { type, state_key, event_id: ids.get(nid) }
  })
  return { ...summary, events }
}

export function printEvent(event: EventReport): string {
  const { state_before: state } = event
  const references = (list: EventReport['prev_events']) =>
    list.length === 0 ? ['none'] : list.map(({ event_id, type, standing }) => `${event_id}  ${type ?? ''}  ${standing}`)
  return [
    `${event.event_id}, ${event.type}${event.state_key === undefined ? '' : ` "${event.state_key}"`}`,
    entry('sender', [`${event.sender}, ${event.sent}, depth ${event.depth}`]),
    entry('standing', [event.standing, ...(event.reason === undefined ? [] : [event.reason])]),
    ...(event.redacted_by === undefined ? [] : [entry('redacted by', [event.redacted_by])]),
    entry('timeline', [event.place_in_timeline === null ? 'no place in it' : `place ${event.place_in_timeline}`]),
    entry('prev events', references(event.prev_events)),
    entry('auth events', references(event.auth_events)),
    entry('state before', state === undefined ? ['not known'] : [`${state.entries} entries, at ${state.at}`]),
    ...(state && 'events' in state
      ? state.events.map(({ type, state_key, event_id }) => `    ${type} "${state_key}"  ${event_id}`)
      : []),
  ].join('\n')
}
