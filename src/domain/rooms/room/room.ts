import type { EventId, RoomId, UserId } from '../../../core/ids.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import type { AuthGraph } from '../../../core/state/graph.ts'
import { EMPTY_STATE, getState, type StateMap, stateBytes } from '../../../core/state/trie.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Membership } from '../../../store/rooms/rooms.ts'
import type { EventCache } from './event-cache.ts'
import type { Head, StateChange } from './head.ts'
import { JoinedServers } from './joined-servers.ts'
import type { PartialState } from './partial-state.ts'
import { type Place, Places } from './recent/places.ts'
import { UndoLog } from './recent/undo-log.ts'
import { RecentBranches } from './recent-branches.ts'
import type { RoomEvent } from './room-event.ts'
import { StateKeys } from './state-keys.ts'

export interface LocalMember {
  readonly userNid: number
  readonly userId: UserId
  readonly displayName: string | undefined
  /** A stream position since which they have been joined. */
  readonly since: number
}

interface Mentionables {
  readonly userIds: ReadonlySet<UserId>
  readonly nids: ReadonlyMap<UserId, number>
}

const TIPS_KEPT = 256
/** Edges that wait to be added to the auth graph. When more wait, the graph is read again on the next use. */
const GRAPH_NEWS_KEPT = 4096

/**
 * Bytes of an empty room, of a chain's tip, of a local member, and of a member who can be mentioned. Measured:
 * a test compares them with the heap.
 */
const ROOM_BYTES = 2_000
const TIP_BYTES = 40
const MEMBER_BYTES = 160
const MENTIONABLE_BYTES = 300

/**
 * A room in memory. It holds numbers of events and small values; the events themselves are in the event cache. `pending` runs ahead of
 * `committed`: new events build on one another without waiting for the database, and readers see what is committed. When a write is
 * refused, this copy of the room is dead, and whoever holds it loads the room again.
 */
export class Room {
  readonly nid: number
  readonly id: RoomId
  readonly version: RoomVersion
  readonly keys: StateKeys
  pending: Head
  committed: Head
  alive = true
  /** The timeline position up to which operators removed history. */
  purgedTo = Number.NEGATIVE_INFINITY
  /** Set while the room has partial state. */
  partialState: PartialState | undefined
  /** How many outliers were enqueued since the room was loaded. */
  outliersTaken = 0
  /** The last change of each chain that was written to recently. */
  readonly tips = new Map<number, number>()
  readonly #branches = new RecentBranches()
  /** Which events authorise which, among all that may be in a state. Read when branches must be resolved. */
  #authGraph: Promise<AuthGraph> | undefined
  #graphBytes = 0
  /** State events that were enqueued since the auth graph was complete, or since the read of it began. */
  #graphNews: Pick<RoomEvent, 'nid' | 'authNids'>[] = []
  /** Events that are enqueued and not committed. */
  readonly #unsettled = new Map<EventId, RoomEvent>()
  readonly #unsettledByNid = new Map<number, RoomEvent>()
  /** Joined users of this server. */
  readonly localMembers = new Map<number, LocalMember>()
  /** Whether the names of local members are unknown: few rooms need them. */
  lacksNames = false
  readonly counts: Record<Membership, number> = { join: 0, invite: 0, leave: 0, ban: 0, knock: 0 }
  readonly servers = new JoinedServers()
  /** The newest events, oldest first, without gaps. */
  readonly timeline = new Places()
  /** Identifies this copy of the room, without keeping the room in memory. */
  readonly copy: object = {}
  #mentionables: Mentionables | undefined
  readonly #undo = new UndoLog()
  #branchChanges = 0
  readonly #events: EventCache

  constructor(parts: {
    nid: number
    id: RoomId
    version: RoomVersion
    keys: StateKeys
    head: Head
    events: EventCache
  }) {
    this.nid = parts.nid
    this.id = parts.id
    this.version = parts.version
    this.keys = parts.keys
    this.pending = parts.head
    this.committed = parts.head
    this.#events = parts.events
  }

  /** Bytes in memory, without events that are not committed. */
  get bytes(): number {
    return (
      ROOM_BYTES +
      this.keys.bytes +
      stateBytes(this.committed.state) +
      this.timeline.bytes +
      this.tips.size * TIP_BYTES +
      this.localMembers.size * (MEMBER_BYTES + (this.#mentionables ? MENTIONABLE_BYTES : 0)) +
      this.#undo.bytes +
      this.#branches.bytes +
      this.#graphBytes +
      this.servers.bytes
    )
  }

  /** How many changes went to branches other than that of the current state, since the room was loaded. */
  get branchChanges(): number {
    return this.#branchChanges
  }

  /** The first timeline position that `timeline` covers. */
  get timelineFrom(): number {
    return this.timeline.length === 0 ? this.committed.pos + 1 : this.timeline.at(0).pos
  }

  /** Adds what is about to be written, so that the next event can build on it. */
  enqueued({ events, promoted, changes, after }: Growth): void {
    this.pending = after
    for (const { chain, seq } of changes) this.#noteTip(chain, seq)
    for (const event of [...events, ...promoted]) {
      this.#unsettled.set(event.id, event)
      this.#unsettledByNid.set(event.nid, event)
      if (this.#authGraph && event.authNids) this.#graphNews.push({ nid: event.nid, authNids: event.authNids })
    }
    if (this.#graphNews.length > GRAPH_NEWS_KEPT) this.#forgetGraph()
  }

  #forgetGraph(): void {
    this.#authGraph = undefined
    this.#graphNews = []
    this.#graphBytes = 0
  }

  /** A chain whose tip is forgotten is not continued: the next change branches off it. */
  #noteTip(chain: number, seq: number): void {
    this.tips.delete(chain)
    this.tips.set(chain, seq)
    if (this.tips.size > TIPS_KEPT) this.tips.delete(this.tips.keys().next().value!)
  }

  /** The enqueued events are in the database. */
  settled({ events, promoted }: Pick<Growth, 'events' | 'promoted'>): void {
    for (const event of [...events, ...promoted]) {
      if (this.#unsettled.get(event.id) !== event) continue
      this.#unsettled.delete(event.id)
      this.#unsettledByNid.delete(event.nid)
    }
  }

  /** Whether users of other servers are in the room. */
  get isShared(): boolean {
    return this.counts.join > this.localMembers.size || (this.partialState?.serversMeanwhile.size ?? 0) > 0
  }

  get isSettled(): boolean {
    return this.#unsettled.size === 0
  }

  /** An event that is enqueued and not committed. */
  unsettled(eventId: EventId): RoomEvent | undefined {
    return this.#unsettled.get(eventId)
  }

  /** The auth graph, including everything enqueued. @param read reads the edges in the database, cited events first */
  async authGraph(read: () => Promise<AuthGraph>): Promise<AuthGraph> {
    if (!this.#authGraph) {
      this.#graphNews = [...this.#unsettled.values()].filter(({ authNids }) => authNids)
      const reading = read()
      this.#authGraph = reading
      reading.catch(() => {
        if (this.#authGraph === reading) this.#authGraph = undefined
      })
    }
    const reading = this.#authGraph
    const graph = await reading
    // More events came meanwhile than the list keeps.
    if (reading !== this.#authGraph) return this.authGraph(read)
    const news = this.#graphNews.sort((a, b) => a.nid - b.nid)
    this.#graphNews = []
    for (const event of news) graph.add(event.nid, event.authNids!)
    this.#graphBytes = graph.bytes
    return graph
  }

  /** Number of the state event for a type and state key, 0 when there is none. */
  stateNid(state: StateMap, type: string, stateKey: string): number {
    const keyId = this.keys.idOf(type, stateKey)
    return keyId === undefined ? 0 : getState(state, keyId)
  }

  /** An event that is in memory: enqueued, or cached. */
  fact(nid: number): RoomEvent | undefined {
    const unsettled = this.#unsettledByNid.size === 0 ? undefined : this.#unsettledByNid.get(nid)
    return unsettled ?? this.#events.get(nid)
  }

  /** A committed state event, loaded if necessary. */
  async stateEvent(type: string, stateKey: string, state = this.committed.state): Promise<RoomEvent | undefined> {
    const nid = this.stateNid(state, type, stateKey)
    if (nid === 0) return undefined
    return this.fact(nid) ?? (await this.#events.load([nid])).get(nid)
  }

  /** Events by number, including those not committed yet. */
  async events(nids: readonly number[]): Promise<Map<number, RoomEvent>> {
    const known = new Map<number, RoomEvent>()
    const missing: number[] = []
    for (const nid of nids) {
      const event = this.fact(nid)
      if (event) known.set(nid, event)
      else if (nid !== 0) missing.push(nid)
    }
    if (missing.length > 0) for (const [nid, event] of await this.#events.load(missing)) known.set(nid, event)
    return known
  }

  /** The events at some places of `timeline`, in their order. Synchronous when all are in memory. */
  eventsAt(places: readonly Place[]): RoomEvent[] | Promise<RoomEvent[]> {
    const found: RoomEvent[] = []
    for (const { nid } of places) {
      const event = this.fact(nid)
      if (event === undefined) return this.#loadAt(places)
      found.push(event)
    }
    return found
  }

  async #loadAt(places: readonly Place[]): Promise<RoomEvent[]> {
    const events = await this.events(places.map(({ nid }) => nid))
    return places.flatMap(({ nid }) => events.get(nid) ?? [])
  }

  /** The state after change `seq` of the current chain, found by undoing later changes; undefined when it is too long ago. */
  recentState(chain: number, seq: number): StateMap | undefined {
    return this.#undo.stateAt(this.committed, chain, seq)
  }

  /** The state of a branch, if it was used recently. */
  branchState(point: StatePoint): StateMap | undefined {
    if (point.chain === this.pending.chain && point.seq === this.pending.seq) return this.pending.state
    return this.#branches.get(point)
  }

  keepBranch(point: StatePoint, state: StateMap): void {
    this.#branches.keep(point, state, this.pending.state)
  }

  /** Applies committed events and the head after them. */
  advance(events: readonly RoomEvent[], changes: readonly StateChange[], head: Head): void {
    for (const event of events) {
      // `timeline` must have no gaps other than the open ones, so it starts after backfilled history.
      if (event.isHistory) this.timeline.keepAbove(event.pos)
      else if (event.isInTimeline) this.timeline.push(event)
    }
    this.#branchChanges += this.#undo.record(changes, this.committed, head)
    this.committed = head
  }

  /** Adds events from the database at the older end of `timeline`, down to backfilled history. */
  extendTimeline(older: readonly RoomEvent[]): void {
    const from = this.timelineFrom
    const news = older.slice(older.findLastIndex(({ isHistory }) => isHistory) + 1)
    const fitting = news.filter((event) => event.pos < from)
    if (fitting.at(-1)?.pos !== from - 1) return
    this.timeline.extend(fitting)
    for (const event of fitting.toReversed()) if (!this.#undo.learn(event, this.committed)) return
  }

  /** Local members by id; rebuilt when they change. */
  mentionables(): Mentionables {
    if (this.#mentionables) return this.#mentionables
    const nids = new Map([...this.localMembers.values()].map(({ userId, userNid }) => [userId, userNid]))
    this.#mentionables = { userIds: new Set(nids.keys()), nids }
    return this.#mentionables
  }

  /** Takes the names of local members as they were read. @param before the members when that began: who changed since has the right name */
  nameMembers(names: ReadonlyMap<number, string | undefined>, before: ReadonlyMap<number, LocalMember>): void {
    for (const [userNid, displayName] of names) {
      const member = this.localMembers.get(userNid)
      if (member !== undefined && member === before.get(userNid))
        this.localMembers.set(userNid, { ...member, displayName })
    }
    this.#mentionables = undefined
    this.lacksNames = false
  }

  /** Applies a committed membership. */
  recordMember(change: MembershipChange): void {
    if (change.before !== undefined) this.counts[change.before]--
    this.counts[change.after]++
    this.servers.record(change)
    if (!change.isLocal) return
    this.#mentionables = undefined
    const { userNid, userId, displayName, changedAt } = change
    if (change.after !== 'join') this.localMembers.delete(userNid)
    else {
      const since = this.localMembers.get(userNid)?.since ?? changedAt
      this.localMembers.set(userNid, { userNid, userId, displayName, since })
    }
  }
}

/** What the events of one write add to a room. */
export interface Growth {
  readonly events: readonly RoomEvent[]
  readonly promoted: readonly RoomEvent[]
  readonly changes: readonly StateChange[]
  readonly after: Head
}

/** A change of a user's membership. */
export interface MembershipChange {
  readonly userNid: number
  readonly userId: UserId
  readonly isLocal: boolean
  readonly displayName: string | undefined
  readonly before: Membership | undefined
  readonly after: Membership
  readonly eventNid: number
  /**
   * The stream position of the event that brought the change. With several branches, that can be another event than the membership itself.
   */
  readonly changedAt: number
}

/** A room that is not written yet. */
export function emptyRoom(parts: { nid: number; id: RoomId; version: RoomVersion; events: EventCache }): Room {
  const head: Head = {
    version: 0,
    extremities: [],
    merged: 0,
    depth: 0,
    pos: 0,
    nid: 0,
    notifiable: 0,
    chain: 0,
    seq: 0,
    state: EMPTY_STATE,
    tip: 0,
    lastChain: 0,
  }
  return new Room({ ...parts, keys: new StateKeys(), head })
}
