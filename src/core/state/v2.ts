import { readPowerLevels } from '../auth/power-levels.ts'
import { authorise } from '../auth/rules.ts'
import { statedMembership } from '../event/content.ts'
import type { Pdu } from '../event/format.ts'
import type { Integer } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'
import { type Disagreement, eventsAmong } from './differences.ts'
import { mainlineOrder } from './mainline.ts'
import { powerOrder } from './power-order.ts'
import { authKeysOf, LoadedEvents, type ResolutionSource, type StateEvent } from './source.ts'

// "State resolution" of room version 2, and as room version 12 changes it (v2.1). Steps are those of its "Algorithm".

/** After so many auth checks (some milliseconds) the resolution pauses, so that other work can run. */
const CHECKS_AT_ONCE = 500

/** State resolution of room versions 2 to 11, and 12. */
export async function resolveByPower(
  version: RoomVersion,
  disagreement: Disagreement,
  source: ResolutionSource,
): Promise<ReadonlyMap<number, number>> {
  const resolution = new Resolution(version, disagreement, source)
  const full = await resolution.load()
  // 1. Power events, with their auth chains within the full conflicted set, by reverse topological power ordering.
  const powerful = resolution.powerEvents(full)
  // 2. The iterative auth checks of these give the partially resolved state.
  await resolution.apply(resolution.byPower(powerful))
  // 3. All other events, by mainline ordering.
  const others = [...full].filter((nid) => !powerful.has(nid))
  // 4. The iterative auth checks of these complete the state. The caller does step 5: unconflicted state takes precedence.
  await resolution.apply(await resolution.byMainline(others))
  return resolution.resolved
}

class Resolution {
  /** The state that the iterative auth checks have set so far, by key number. */
  readonly resolved = new Map<number, number>()
  readonly #version: RoomVersion
  readonly #disagreement: Disagreement
  readonly #source: ResolutionSource
  readonly #events: LoadedEvents
  readonly #createKey: number | undefined
  readonly #powerKey: number | undefined
  /** The room's create event, 0 if no state has one. */
  readonly #create: number

  constructor(version: RoomVersion, disagreement: Disagreement, source: ResolutionSource) {
    this.#version = version
    this.#disagreement = disagreement
    this.#source = source
    this.#events = new LoadedEvents(source)
    this.#createKey = source.keyOf('m.room.create', '')
    this.#powerKey = source.keyOf('m.room.power_levels', '')
    this.#create = this.#createKey === undefined ? 0 : disagreement.anyAt(this.#createKey)
  }

  get #isRevised(): boolean {
    return this.#version.stateResolution === 'v2.1'
  }

  /** Loads the full conflicted set, and everything that its auth checks can need, in two calls. Gives that set. */
  async load(): Promise<Set<number>> {
    const full = this.#fullConflictedSet()
    await this.#events.load(full)
    const needed = new Set([this.#startingFrom(this.#powerKey), this.#create])
    for (const nid of full) {
      for (const auth of this.#source.graph.authOf(nid)) needed.add(auth)
      for (const key of this.#authKeysOf(nid)) needed.add(this.#startingFrom(key))
    }
    needed.delete(0)
    await this.#events.load(needed)
    return full
  }

  /** "Full conflicted set": the conflicted state set, the auth difference, and in room version 12 the conflicted state subgraph. */
  #fullConflictedSet(): Set<number> {
    const { graph } = this.#source
    const conflicted = [...this.#disagreement.differences.values()].flatMap(eventsAmong)
    const full = new Set([...conflicted, ...graph.difference(this.#disagreement.states)])
    if (this.#isRevised) for (const nid of graph.between(conflicted)) full.add(nid)
    return full
  }

  /** The initial state of the iterative auth checks: the unconflicted state map, in room version 12 an empty one. */
  #startingFrom(key: number | undefined): number {
    return this.#isRevised || key === undefined ? 0 : this.#disagreement.agreedOn(key)
  }

  #current(key: number | undefined): number {
    return (key === undefined ? undefined : this.resolved.get(key)) ?? this.#startingFrom(key)
  }

  /**
   * The power events of the set, and their auth chains within it. The network follows auth edges only inside the set;
   * by the published text, events that are reached through events outside the set would belong to it too.
   */
  powerEvents(full: ReadonlySet<number>): Set<number> {
    const pending = [...full].filter((nid) => isPowerEvent(this.#events.get(nid).pdu))
    const found = new Set(pending)
    for (let nid = pending.pop(); nid !== undefined; nid = pending.pop()) {
      for (const auth of this.#source.graph.authOf(nid)) {
        if (!full.has(auth) || found.has(auth)) continue
        found.add(auth)
        pending.push(auth)
      }
    }
    return found
  }

  byPower(nids: ReadonlySet<number>): number[] {
    return powerOrder(nids, this.#source.graph, this.#events, (nid) => this.#powerOfSender(nid))
  }

  byMainline(nids: readonly number[]): Promise<number[]> {
    const chains = { graph: this.#source.graph, events: this.#events, powerKey: this.#powerKey }
    return mainlineOrder(chains, nids, this.#current(this.#powerKey))
  }

  /** The power of an event's sender by the event's own auth events. */
  #powerOfSender(nid: number): Integer {
    const levels = this.#events.citedBy(nid, this.#powerKey)?.pdu.content
    const create = this.#pduOf(this.#createFor(nid))
    return readPowerLevels(this.#version, levels, create).levelOf(this.#events.get(nid).pdu.sender)
  }

  /** The create event for an event: among its auth events, or implied by the room id; 0 if there is none. */
  #createFor(nid: number): number {
    return this.#version.createIsAuthEvent ? (this.#events.citedBy(nid, this.#createKey)?.nid ?? 0) : this.#create
  }

  #pduOf(nid: number): Pdu | undefined {
    return nid === 0 ? undefined : this.#events.get(nid).pdu
  }

  /** "Iterative auth checks": each event that the rules allow in the state resolved so far is added to it; others are skipped. */
  async apply(order: readonly number[]): Promise<void> {
    for (const [index, nid] of order.entries()) {
      if (index % CHECKS_AT_ONCE === CHECKS_AT_ONCE - 1) await this.#source.pause?.()
      const event = this.#events.get(nid)
      if (event.keyId !== undefined && this.#isAllowed(event)) this.resolved.set(event.keyId, nid)
    }
  }

  /** If the state lacks a key that the rules need, the event's own auth event for it is used. */
  #isAllowed({ nid, pdu }: StateEvent): boolean {
    const state = new Map<number, number>()
    if (this.#createKey !== undefined) state.set(this.#createKey, this.#createFor(nid))
    for (const auth of this.#source.graph.authOf(nid)) {
      const { keyId } = this.#events.get(auth)
      if (keyId !== undefined) state.set(keyId, auth)
    }
    for (const key of this.#authKeysOf(nid)) {
      const current = this.#current(key)
      if (current !== 0) state.set(key, current)
    }
    return authorise(this.#version, pdu, (type, stateKey) => {
      const key = this.#source.keyOf(type, stateKey)
      return this.#pduOf((key === undefined ? undefined : state.get(key)) ?? 0)
    }).allowed
  }

  #authKeysOf(nid: number): number[] {
    return authKeysOf(this.#version, this.#source, this.#events.get(nid).pdu)
  }
}

/**
 * "Power events": events that could remove someone's ability to do something in the room. As in the network, state counts only with its
 * proper (empty) state key, and the create event counts too.
 */
function isPowerEvent({ type, state_key: stateKey, sender, content }: Pdu): boolean {
  if (type === 'm.room.member') {
    const membership = statedMembership(content)
    return (membership === 'leave' || membership === 'ban') && sender !== stateKey
  }
  return stateKey === '' && POWER_TYPES.has(type)
}

const POWER_TYPES: ReadonlySet<string> = new Set(['m.room.create', 'm.room.power_levels', 'm.room.join_rules'])
