import { createHash } from 'node:crypto'
import { authEventKeys } from '../../src/core/auth/select.ts'
import { type BuiltEvent, buildEvent } from '../../src/core/event/build.ts'
import { type EventReference, type Pdu, referencedId } from '../../src/core/event/format.ts'
import { type EventId, type RoomId, type ServerName, serverOf, type UserId } from '../../src/core/ids.ts'
import { type JsonObject, type ReadJson, readExactJson } from '../../src/core/json.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { referenceTo, roomIdOfCreate } from '../../src/core/signing/event-hash.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { authIdsOf, prevIdsOf } from '../../src/domain/rooms/room/event-references.ts'
import { type RoomView, viewRoom } from '../federation/room-view.ts'
import type { SimulatedServer } from '../federation/server.ts'
import type { Answers } from '../federation/world.ts'
import { type ForgedState, withEntry } from './forged-state.ts'

const known = new Map<string, SigningKey>()

/** Everybody's key is a function of the server's name, as simulated servers take it to be. */
export function keyOf(server: string): SigningKey {
  const key = known.get(server) ?? signingKeyFromSeed('ed25519:sim', createHash('sha256').update(server).digest())
  known.set(server, key)
  return key
}

/** What a server tells of a room to one that joins. */
export interface ForgedRoom {
  readonly state: readonly ReadJson[]
  readonly authChain: readonly ReadJson[]
}

export const stateKey = (type: string, key = ''): string => `${type} ${key}`

export interface Sketch {
  readonly type: string
  readonly sender: UserId
  readonly content?: JsonObject
  readonly state_key?: string
  /** What it builds on: the newest event unless said otherwise. */
  readonly prev?: readonly EventId[]
  /** What it cites: what the rules select from the state before it unless said otherwise. */
  readonly auth?: readonly EventId[]
  /** The state before it: by its first `prev` unless said otherwise. */
  readonly state?: ForgedState
  readonly redacts?: EventId
  readonly event_id?: EventId
  readonly depth?: number
  readonly ts?: number
  /** How long it is sticky, in milliseconds. */
  readonly stickyMs?: number
}

const FIRST_MOMENT = 1_800_000_000_000

/** A room in the hands of somebody who holds the keys of other servers, and makes what events they like. */
export class Forge {
  readonly version: RoomVersion
  readonly events = new Map<EventId, Pdu>()
  readonly texts = new Map<EventId, string>()
  /** The state after each event, as its maker has it. */
  readonly states = new Map<EventId, ForgedState>()
  latest: EventId | undefined
  #roomId: RoomId | undefined
  readonly #name: string
  readonly #since: number
  #made = 0

  /**
   * @param name tells rooms apart that would otherwise be the same
   * @param since when its events are made, in ms: one after the other from then on
   */
  constructor(version: RoomVersion, name: string, roomId?: RoomId, since = FIRST_MOMENT) {
    this.#since = since
    this.version = version
    this.#name = name
    this.#roomId = roomId
  }

  get roomId(): RoomId {
    return this.#roomId!
  }

  /** A public room of a remote user, whose power is that of a creator. */
  static open(
    version: RoomVersion,
    name: string,
    creator: UserId,
    levels: JsonObject = {},
    since = FIRST_MOMENT,
  ): Forge {
    const forge = new Forge(
      version,
      name,
      version.roomIdIsCreateHash ? undefined : (`!${name}:${serverOf(creator)}` as RoomId),
      since,
    )
    const content = { room_version: version.id, name, ...(version.createNamesCreator ? { creator } : {}) }
    forge.make({ type: 'm.room.create', sender: creator, state_key: '', content })
    forge.member(creator, 'join')
    const users = version.creatorsAreInfinite ? {} : { [creator]: 100 }
    const given = (levels.users as JsonObject | undefined) ?? {}
    forge.set(creator, 'm.room.power_levels', { invite: 0, ...levels, users: { ...users, ...given } })
    forge.set(creator, 'm.room.join_rules', { join_rule: 'public' })
    return forge
  }

  /** A room of a simulated server's, with all that it holds of it. */
  static async of(server: SimulatedServer, version: RoomVersion, roomId: RoomId): Promise<Forge> {
    const forge = new Forge(version, roomId.slice(1, 9), roomId)
    await forge.catchUp(server)
    return forge
  }

  async catchUp(server: SimulatedServer): Promise<RoomView> {
    const view = (await viewRoom(server.db, this.roomId))!
    for (const event of view.events.values()) {
      if (this.events.has(event.id) || event.before.chain < 0) continue
      this.#keep(event.id, event.pdu, encodeCanonical(event.pdu), await view.stateBefore(event))
    }
    this.latest = view.extremities[0]
    return view
  }

  make(sketch: Sketch): EventId {
    const prev = sketch.prev ?? (this.latest === undefined ? [] : [this.latest])
    const before = sketch.state ?? (prev[0] === undefined ? new Map() : (this.states.get(prev[0]) ?? new Map()))
    const { type, sender, content = {} } = sketch
    const selected = authEventKeys(this.version, {
      type,
      sender,
      content,
      ...(sketch.state_key === undefined ? {} : { state_key: sketch.state_key }),
    }).flatMap(([of, key]) => before.get(stateKey(of, key)) ?? [])
    const server = serverOf(sender)
    const made = ++this.#made
    const depths = prev.map((id) => Number(this.events.get(id)?.depth ?? 0))
    const built = buildEvent(
      this.version,
      {
        type,
        sender,
        content,
        ...(sketch.state_key === undefined ? {} : { state_key: sketch.state_key }),
        ...(sketch.redacts === undefined ? {} : { redacts: sketch.redacts }),
        ...(this.#roomId === undefined ? {} : { room_id: this.#roomId }),
        event_id: sketch.event_id ?? (`$${this.#name}-${made}:${server}` as EventId),
        origin_server_ts: sketch.ts ?? this.#since + made,
        stickyMs: sketch.stickyMs,
        depth: sketch.depth ?? Math.max(0, ...depths) + 1,
        prev_events: prev.map((id) => this.referenceTo(id)),
        auth_events: (sketch.auth ?? selected).map((id) => this.referenceTo(id)),
      },
      server as ServerName,
      keyOf(server),
    )
    if (this.#roomId === undefined) this.#roomId = roomIdOfCreate(built.eventId)
    return this.#add(built, before)
  }

  /** A member event; by the member unless said otherwise. */
  member(user: UserId, membership: string, more: Partial<Sketch> = {}): EventId {
    return this.make({
      type: 'm.room.member',
      sender: user,
      state_key: user,
      ...more,
      content: { membership, ...more.content },
    })
  }

  set(sender: UserId, type: string, content: JsonObject, more: Partial<Sketch> = {}): EventId {
    return this.make({ type, sender, state_key: '', content, ...more })
  }

  say(sender: UserId, body: string, more: Partial<Sketch> = {}): EventId {
    return this.make({ type: 'm.room.message', sender, content: { msgtype: 'm.text', body }, ...more })
  }

  /** How a later event names one, also one that nobody has. */
  referenceTo(id: EventId): EventReference {
    if (!this.version.referencesCarryHashes) return id
    const pdu = this.events.get(id)
    return pdu ? referenceTo(this.version, pdu) : [id, { sha256: 'bm9ib2R5IGhhcyB0aGlz' }]
  }

  #add(built: BuiltEvent, before: ForgedState): EventId {
    this.#keep(built.eventId, built.pdu, built.json, before)
    this.latest = built.eventId
    return built.eventId
  }

  #keep(id: EventId, pdu: Pdu, text: string, before: ForgedState): void {
    this.events.set(id, pdu)
    this.texts.set(id, text)
    this.states.set(id, pdu.state_key === undefined ? before : withEntry(before, stateKey(pdu.type, pdu.state_key), id))
  }

  /** The state right before an event. */
  before(id: EventId): ForgedState {
    const [prev] = this.events.get(id)!.prev_events
    return (prev && this.states.get(referencedId(prev))) ?? new Map()
  }

  /** All that authorises some events, these left out. */
  authChain(ids: Iterable<EventId>): EventId[] {
    const found = new Set<EventId>()
    const open = [...ids]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      for (const auth of authIdsOf(this.events.get(id)!)) {
        if (found.has(auth)) continue
        found.add(auth)
        open.push(auth)
      }
    }
    return [...found]
  }

  raw(ids: Iterable<EventId>): ReadJson[] {
    return [...ids].map((id) => readExactJson(this.texts.get(id)!))
  }

  /** What is told of the room to a server that joins it. */
  shown(state: ForgedState): ForgedRoom {
    return { state: this.raw(state.values()), authChain: this.raw(this.authChain(state.values())) }
  }

  /** What the servers of this room answer, unless they lie. */
  answers(lies: Partial<Answers> = {}): Answers {
    return {
      events: async (_, ids) => ids.flatMap((id) => this.texts.get(id) ?? []),
      stateIds: async (_, id) => {
        if (!this.events.has(id)) return undefined
        const state = [...this.before(id).values()]
        return { state, authChain: this.authChain(state) }
      },
      missingEvents: async (_, { earliest, latest, limit }) => {
        const seen = new Set<EventId>([...earliest, ...latest])
        const found: EventId[] = []
        const open = latest.flatMap((id) => prevIdsOf(this.events.get(id)!))
        for (let id = open.shift(); id !== undefined && found.length < limit; id = open.shift()) {
          if (seen.has(id) || !this.events.has(id)) continue
          seen.add(id)
          found.unshift(id)
          open.push(...prevIdsOf(this.events.get(id)!))
        }
        return found.map((id) => this.texts.get(id)!)
      },
      ...lies,
    }
  }
}
