import { authorise } from '../../core/auth/rules.ts'
import { authEventKeys } from '../../core/auth/select.ts'
import type { Verdict } from '../../core/event/format.ts'
import type { EventId } from '../../core/ids.ts'
import { AuthGraph } from '../../core/state/graph.ts'
import { resolveStates } from '../../core/state/resolve.ts'
import { diffState, EMPTY_STATE, getState, type StateMap } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { getAuthEdges, getEvents } from '../../store/events/events.ts'
import type { ClaimedRoom } from '../rooms/room/claimed-room.ts'
import { authIdsOf, authoriseByCited, impliedIds, prevIdsOf } from '../rooms/room/event-references.ts'
import { RoomEvent } from '../rooms/room/room-event.ts'
import type { StateKeys } from '../rooms/room/state-keys.ts'
import { checkBytes, checkReferences, checkSignatures, type KnownKeys } from './event-checks.ts'
import type { KnownEvents } from './known-events.ts'
import type { ReplayedLog } from './replayed-log.ts'
import type { AuditTally } from './tally.ts'

export interface Finding {
  /** The event of the finding; undefined if it is about the room. */
  readonly eventId: EventId | undefined
  readonly what: string
}

export interface AuditedRoom extends ClaimedRoom {
  readonly nid: number
  readonly keys: StateKeys
  readonly log: ReplayedLog
  /** The chain of a partial state that was never completed. */
  readonly unfilledChain: number | undefined
}

export interface AuditParts {
  readonly db: Reader
  readonly room: AuditedRoom
  readonly events: KnownEvents
  readonly knownKeys: KnownKeys
  readonly tally: AuditTally
}

/**
 * Checks a room's events against their content, the events that they refer to and the state before them. It uses no result of earlier
 * checks.
 */
export class EventAudit {
  readonly #parts: AuditParts
  #graph: Promise<AuthGraph> | undefined

  constructor(parts: AuditParts) {
    this.#parts = parts
  }

  async check(nids: readonly number[]): Promise<Finding[]> {
    const { db, room, events, tally } = this.#parts
    const batch = (await getEvents(db, nids)).map((row) => new RoomEvent(row)).sort((a, b) => a.nid - b.nid)
    const cited = batch.flatMap(({ pdu }) => [...authIdsOf(pdu), ...prevIdsOf(pdu)])
    const known = await events.byId([...cited, ...impliedIds(room)])
    const findings: Finding[] = []
    for (const event of batch) {
      tally.events++
      const wrong = [...this.#ownFlaws(event, known), ...(await this.#flawsInRoom(event, known))]
      findings.push(...wrong.map((what) => ({ eventId: event.id, what })))
    }
    return findings
  }

  #ownFlaws(event: RoomEvent, known: ReadonlyMap<EventId, RoomEvent>): string[] {
    const { room, knownKeys, tally } = this.#parts
    return [
      ...checkBytes(room.version, event, tally),
      ...checkReferences(room.version, event, known),
      ...checkSignatures(room.version, event.pdu, knownKeys, tally),
    ]
  }

  async #flawsInRoom(event: RoomEvent, known: ReadonlyMap<EventId, RoomEvent>): Promise<string[]> {
    const { room, tally } = this.#parts
    const missing = [...authIdsOf(event.pdu), ...impliedIds(room)].filter((id) => !known.has(id))
    const isMaking = event.type === 'm.room.create'
    if (missing.length > 0 && !isMaking) return [`of its auth events, ${missing.join(', ')} cannot be found`]
    const byCited = authoriseByCited(room, event.pdu, known)
    if (!event.hasPlace || event.stateChain < 0) return this.#judge(event, known, byCited)
    const before = room.log.stateAt(event.pointBefore)
    if (!before) return [`it stands at ${event.stateChain}:${event.stateSeq} of the state log, which is not there`]
    const wrong = [...(await this.#checkState(event, before, known)), ...this.#checkChange(event)]
    const byState = byCited.allowed ? await this.#authoriseByState(event, before) : byCited
    tally.verdicts++
    return [...wrong, ...this.#judge(event, known, byState)]
  }

  /**
   * Compares a verdict with the event's stored standing. A verdict may depend on content that was redacted since; a rejected event may
   * have been referred to before it was rejected.
   */
  #judge(event: RoomEvent, known: ReadonlyMap<EventId, RoomEvent>, verdict: Verdict): string[] {
    const { tally } = this.#parts
    const isRejected = event.standing === 'rejected'
    if (verdict.allowed !== isRejected) return []
    const involved = [event, ...authIdsOf(event.pdu).map((id) => known.get(id))]
    if (involved.some((one) => one !== undefined && (one.redactedBy !== undefined || wasRejectedLater(one, event)))) {
      tally.uncheckedVerdicts++
      return []
    }
    return [verdict.allowed ? 'it was rejected, and no rule is against it' : `it was not rejected: ${verdict.reason}`]
  }

  async #authoriseByState(event: RoomEvent, before: StateMap): Promise<Verdict> {
    const { room, events } = this.#parts
    const keys = [['m.room.create', ''] as const, ...authEventKeys(room.version, event.pdu)]
    const nids = keys.map(([type, stateKey]) => nidIn(room.keys, before, type, stateKey))
    const loaded = await events.byNid(nids.filter((nid) => nid !== 0))
    return authorise(room.version, event.pdu, (type, stateKey) => {
      const index = keys.findIndex((key) => key[0] === type && key[1] === stateKey)
      return index === -1 ? undefined : loaded.get(nids[index]!)?.pdu
    })
  }

  /** Computes the state before the event again, from its previous events. */
  async #checkState(event: RoomEvent, before: StateMap, known: ReadonlyMap<EventId, RoomEvent>): Promise<string[]> {
    const { room, tally } = this.#parts
    const prevs = prevIdsOf(event.pdu).map((id) => known.get(id))
    const placed = prevs.filter((prev) => prev?.hasPlace && prev.stateChain >= 0 && placedAt(prev) < placedAt(event))
    const isLeft = placed.some((prev) => {
      const { chain, seq } = prev!.pointAfter
      return chain === room.unfilledChain && (event.stateChain !== chain || event.stateSeq !== seq)
    })
    if (placed.length < prevs.length || isLeft) {
      // Previous events were missing then, and another server's state was used.
      tally.uncheckedStates++
      return []
    }
    const states = placed.map((prev) => room.log.stateAt(prev!.pointAfter))
    if (states.some((state) => !state)) return ['an event that it builds on stands nowhere in the state log']
    tally.states++
    const resolved = await this.resolve(states as StateMap[])
    return differences(room.keys, before, resolved).map((what) => `the state before it ${what}`)
  }

  async resolve(states: readonly StateMap[]): Promise<StateMap> {
    const distinct = [...new Set(states)]
    if (distinct.length <= 1) return distinct[0] ?? EMPTY_STATE
    const { room, events, tally } = this.#parts
    tally.resolutions++
    this.#graph ??= this.#readGraph()
    return resolveStates(room.version, distinct, {
      graph: await this.#graph,
      keyOf: (type, stateKey) => room.keys.idOf(type, stateKey),
      load: (nids) => events.byNid(nids),
    })
  }

  async #readGraph(): Promise<AuthGraph> {
    const graph = new AuthGraph()
    for (const { event_nid, auth_nids } of await getAuthEdges(this.#parts.db, this.#parts.room.nid)) {
      graph.add(event_nid, auth_nids)
    }
    return graph
  }

  /** An accepted state event must be the change that follows the state before it. */
  #checkChange(event: RoomEvent): string[] {
    const { room } = this.#parts
    if (event.keyId === undefined || event.standing === 'rejected') {
      const isLost = event.pdu.state_key !== undefined && event.standing !== 'rejected'
      return isLost ? ['it is a state event, but is not stored as one'] : []
    }
    const name = room.keys.nameOf(event.keyId)
    if (name.type !== event.type || name.stateKey !== event.pdu.state_key)
      return ['it is stored under another state key']
    const change = room.log.change(event.pointAfter)
    const isThere = change?.keyId === event.keyId && change.eventNid === event.nid
    return isThere ? [] : ['the state log does not have the change that it makes']
  }
}

/** The event was an outlier when it was referred to, and was rejected when it got its place. */
function wasRejectedLater(cited: RoomEvent, event: RoomEvent): boolean {
  return cited.standing === 'rejected' && cited.keyId !== undefined && cited.streamPos > event.streamPos
}

function nidIn(keys: StateKeys, state: StateMap, type: string, stateKey: string): number {
  const keyId = keys.idOf(type, stateKey)
  return keyId === undefined ? 0 : getState(state, keyId)
}

/** How a stored state differs from the computed one: no finding, or one sentence. */
export function differences(keys: StateKeys, stored: StateMap, right: StateMap): string[] {
  const names: string[] = []
  diffState(stored, right, (keyId) => {
    const { type, stateKey } = keys.nameOf(keyId)
    names.push(`${type} "${stateKey}"`)
  })
  if (names.length === 0) return []
  const rest = names.length > 3 ? ` and ${names.length - 3} more` : ''
  return [`is not what it is to be under ${names.slice(0, 3).join(', ')}${rest}`]
}

/** The stream position at which an event got its place. A redaction may take effect later, when its target arrives. */
function placedAt({ type, nid, streamPos, isHistory }: RoomEvent): number {
  return type === 'm.room.redaction' && !isHistory ? nid : streamPos
}
