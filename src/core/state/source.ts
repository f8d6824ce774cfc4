import { authEventKeys } from '../auth/select.ts'
import type { Pdu } from '../event/format.ts'
import type { EventId } from '../ids.ts'
import type { RoomVersion } from '../room-version.ts'
import type { AuthGraph } from './graph.ts'

/** An accepted state event and its state key. */
export interface StateEvent {
  readonly nid: number
  readonly id: EventId
  /** The number of its type and state key. */
  readonly keyId: number | undefined
  readonly pdu: Pdu
}

/** The facts about a room that a resolution needs. */
export interface ResolutionSource {
  /** Contains each event of the states, with its whole auth chain. */
  readonly graph: AuthGraph
  /** The room's number for a type and state key; undefined when no event of the room has them. */
  keyOf(type: string, stateKey: string): number | undefined
  /** The events with these numbers: one call is one round trip. */
  load(nids: readonly number[]): Promise<ReadonlyMap<number, StateEvent>>
  /** Awaited regularly in a long resolution, so that other work can run. */
  pause?(): Promise<void>
}

/** The key numbers of the state that authorises an event, as far as the room has events for them. */
export function authKeysOf(version: RoomVersion, source: ResolutionSource, pdu: Pdu): number[] {
  return authEventKeys(version, pdu)
    .map(([type, stateKey]) => source.keyOf(type, stateKey))
    .filter((key) => key !== undefined)
}

/** The events that one resolution has loaded so far. Loading is asynchronous, in batches; reading is synchronous. */
export class LoadedEvents {
  readonly #source: ResolutionSource
  readonly #events = new Map<number, StateEvent>()

  constructor(source: ResolutionSource) {
    this.#source = source
  }

  /** Loads the missing events, if any, in one call. */
  async load(nids: Iterable<number>): Promise<void> {
    const missing = [...new Set(nids)].filter((nid) => !this.#events.has(nid))
    if (missing.length === 0) return
    const loaded = await this.#source.load(missing)
    for (const nid of missing) {
      const event = loaded.get(nid)
      if (event === undefined) throw new Error(`event ${nid} is in the auth graph, but cannot be loaded`)
      this.#events.set(nid, event)
    }
  }

  has(nid: number): boolean {
    return this.#events.has(nid)
  }

  get(nid: number): StateEvent {
    const event = this.#events.get(nid)
    if (event === undefined) throw new Error(`event ${nid} is used before it is loaded`)
    return event
  }

  /** The auth event of `nid` with the key number `key`. All its auth events must be loaded. */
  citedBy(nid: number, key: number | undefined): StateEvent | undefined {
    if (key === undefined) return undefined
    const cited = this.#source.graph.authOf(nid).find((auth) => this.get(auth).keyId === key)
    return cited === undefined ? undefined : this.get(cited)
  }
}
