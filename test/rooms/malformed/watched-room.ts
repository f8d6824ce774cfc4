import { type BuiltEvent, buildEvent } from '../../../src/core/event/build.ts'
import { type EventReference, type Pdu, referencedId } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import { type ReadJson, readExactJson } from '../../../src/core/json.ts'
import type { RoomVersion } from '../../../src/core/room-version.ts'
import type { Received } from '../../../src/domain/rooms/receive/received.ts'
import { prevIdsOf } from '../../../src/domain/rooms/room/event-references.ts'
import { viewRoom } from '../../federation/room-view.ts'
import { isExpected, type MalformedFixture, MEMBER } from '../../support/malformed.ts'
import { KEYS, MalformedRoom, stateKeyOf, TS } from '../../support/malformed-room.ts'
import type { ForgedRoom } from '../forge.ts'
import type { Forgery } from './forgery.ts'
import { WATCHER, type WatchedServer } from './server.ts'

export const BETA = 'beta.test' as ServerName
export const ALPHA = 'alpha.test' as ServerName

/** What an event says of itself where it is not the next message of {@link MEMBER}. */
interface Unlike {
  readonly prev?: readonly EventReference[]
  readonly auth?: readonly EventReference[]
}

/**
 * A room for malformed events with a user of the server under test in it. It keeps account of what that server has to hold of
 * it: which events it builds on, and the state.
 */
export class WatchedRoom {
  readonly base: MalformedRoom
  readonly version: RoomVersion
  /** With it the server came in. */
  readonly join: BuiltEvent
  /** Every event that has to be accepted, by id. */
  readonly accepted = new Set<EventId>()
  /** Event ids by `type` and `state_key`, as text. */
  readonly state: Map<string, EventId>
  /** Events of states that others told: clients see them where their timeline begins at the gap before such a state. */
  readonly shownState = new Set<EventId>()
  readonly #name: string
  /** What happened in the room after the join. */
  readonly #since: readonly BuiltEvent[]
  readonly #prevs = new Map<EventId, readonly EventId[]>()
  readonly #excluded = new Set<EventId>()
  #latest: Map<EventId, EventReference>
  #depth: number
  #made = 0

  constructor(version: RoomVersion, name: string, base = new MalformedRoom(version, name, WATCHER)) {
    this.version = version
    this.#name = name
    this.base = base
    const events = [...base.events.values()]
    this.join = events.find(({ pdu }) => pdu.sender === WATCHER)!
    this.#since = events.slice(events.indexOf(this.join) + 1)
    for (const { eventId } of [this.join, ...this.#since]) this.accepted.add(eventId)
    this.state = new Map([...base.current].map(([key, { eventId }]) => [key.replace('|', ' '), eventId]))
    this.#latest = new Map(base.fixture.latest.map((reference) => [referencedId(reference), reference]))
    this.#depth = base.fixture.depth
  }

  get id(): RoomId {
    return this.base.fixture.roomId
  }

  get latest(): readonly EventReference[] {
    return [...this.#latest.values()]
  }

  /** For what is forged next. */
  get fixture(): MalformedFixture {
    return { ...this.base.fixture, latest: this.latest, depth: this.#depth }
  }

  /** For what is forged before the server joins. */
  fixtureAtJoin(): MalformedFixture {
    return { ...this.base.fixture, latest: this.join.pdu.prev_events, depth: Number(this.join.pdu.depth) - 1 }
  }

  /** The room as a server of it tells it to the one that joins. */
  shown(): ForgedRoom {
    const state = [...this.stateBeforeJoin().values()]
    const events = [...this.base.events.values()]
    const before = events.slice(0, events.indexOf(this.join))
    return { state: state.map(jsonOf), authChain: before.filter((event) => !state.includes(event)).map(jsonOf) }
  }

  stateBeforeJoin(): ReadonlyMap<string, BuiltEvent> {
    return this.base.states.get(referencedId(this.join.pdu.prev_events[0]!))!
  }

  /** Has the server join, and receive what happened since. */
  async open({ engine: { processJoin, receiver } }: WatchedServer): Promise<void> {
    const joined = await processJoin(ALPHA, this.version, this.id, jsonOf(this.join), this.shown())
    const received = await receiver.receive(ALPHA, this.id, this.#since.map(jsonOf))
    const refused = [joined, ...received].find(({ kind }) => kind !== 'accepted')
    if (refused) throw new Error(`an event of the room was ${refused.kind}: ${refused.reason}`)
  }

  /** The next message of the member, or one that builds on or cites something else. */
  say({ prev = this.latest, auth }: Unlike = {}): BuiltEvent {
    const { version } = this
    const { create, levels, member } = this.base.fixture.references
    return buildEvent(
      version,
      {
        type: 'm.room.message',
        sender: MEMBER as UserId,
        room_id: this.id,
        event_id: `$${this.#name}-said-${++this.#made}:beta.test` as EventId,
        content: { msgtype: 'm.text', body: `${this.#made}` },
        origin_server_ts: TS,
        depth: Math.min(this.#depth + 2, Number.MAX_SAFE_INTEGER),
        prev_events: prev,
        auth_events: auth ?? (version.createIsAuthEvent ? [create, levels, member] : [levels, member]),
      },
      BETA,
      KEYS['beta.test'],
    )
  }

  /** Messages, each of which builds on the one before. */
  sayMany(count: number): BuiltEvent[] {
    const said = [this.say()]
    while (said.length < count) said.push(this.say({ prev: [said.at(-1)!.reference] }))
    return said
  }

  /** Takes note of an event that is in the state though it has no place in the timeline. */
  async learn({ db }: WatchedServer, id: EventId): Promise<void> {
    const view = await viewRoom(db, this.id)
    for (const [key, value] of view!.state) if (value === id) this.state.set(key, id)
    if (view!.events.get(id)?.standing === 'outlier') this.shownState.add(id)
  }

  /** What became of a malformed event is what must; that is noted. */
  mustBeExpected({ malformed, read, reference, eventId }: Forgery, received: Received): void {
    const { kind, reason } = received
    const isOtherForm = kind === 'known' && (this.accepted.has(eventId) || this.#excluded.has(eventId))
    const fate = kind === 'accepted' && read?.isRedacted ? 'redacted' : kind
    // Signatures and what redaction removes are no part of an id: another form of the event may have come before.
    if (!isOtherForm && !isExpected(malformed, fate))
      throw new Error(`version ${this.version.id}: ${malformed.kind}: ${malformed.name}: ${fate}: ${reason}`)
    if (read) this.took(received, reference, read.pdu)
  }

  /** The room has an event more, unless it was refused. */
  took({ kind }: Pick<Received, 'kind'>, reference: EventReference, pdu: Pdu): void {
    const id = referencedId(reference)
    if (kind === 'dropped' || kind === 'known') return
    this.#prevs.set(id, prevIdsOf(pdu))
    if (kind !== 'accepted') {
      this.#excluded.add(id)
      return
    }
    this.#cover(id)
    this.#latest.set(id, reference)
    this.#depth = Math.max(this.#depth, Number(pdu.depth))
    this.accepted.add(id)
    if (pdu.state_key !== undefined) this.state.set(`${pdu.type} ${pdu.state_key}`, id)
  }

  #cover(id: EventId): void {
    for (const prev of this.#prevs.get(id) ?? []) {
      this.#latest.delete(prev)
      if (this.#excluded.has(prev)) this.#cover(prev)
    }
  }

  /** A message that builds on all there is, when there are several ends. */
  async mend({ engine }: WatchedServer): Promise<void> {
    if (this.#latest.size === 1) return
    const event = this.say()
    const [received] = await engine.receiver.receive(BETA, this.id, [readExactJson(event.json)])
    if (received!.kind !== 'accepted') throw new Error(`what is valid was ${received!.kind}: ${received!.reason}`)
    this.took(received!, event.reference, event.pdu)
  }

  /** The event of the current state that an event would take the place of. */
  underKeyOf({ type, state_key }: Pdu): EventId | undefined {
    return state_key === undefined ? undefined : this.stateBeforeJoin().get(stateKeyOf(type, state_key))?.eventId
  }
}

export function jsonOf({ json }: BuiltEvent): ReadJson {
  return readExactJson(json)
}
