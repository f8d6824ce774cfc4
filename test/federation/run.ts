import { setImmediate } from 'node:timers/promises'
import { ProtocolError } from '../../src/core/errors.ts'
import type { BuiltEvent } from '../../src/core/event/build.ts'
import type { Pdu } from '../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { serverOf } from '../../src/core/ids.ts'
import { type JsonObject, type ReadJson, readExactJson } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { Requester } from '../../src/domain/accounts/requester.ts'
import type { Rooms } from '../../src/domain/rooms/act/rooms.ts'
import type { FederationQueries } from '../../src/domain/rooms/receive/federation-queries.ts'
import type { Received } from '../../src/domain/rooms/receive/received.ts'
import { buildFromTemplate, withAuthoriser } from '../../src/domain/rooms/remote/join.ts'
import { prevIdsOf } from '../../src/domain/rooms/room/event-references.ts'
import { Dice } from './dice.ts'
import { Network } from './network.ts'
import { madeSince, memberships } from './room-view.ts'
import type { SimulatedServer } from './server.ts'
import { type Answers, honestAnswers, type Surroundings, seededRandom, virtualClock } from './world.ts'

const FIRST_MOMENT = 1_700_000_000_000
/** Runs are far apart in time: no two make a room in the same millisecond. */
const RUN_SPAN_MS = 1_000_000_000

/** Servers that take part in rooms together, over a network that a seed decides. */
export class Run implements Surroundings {
  readonly seed: number
  readonly dice: Dice
  readonly network: Network
  readonly servers: ReadonlyMap<ServerName, SimulatedServer>
  readonly questions: { readonly from: ServerName; readonly of: ServerName; readonly kind: keyof FederationQueries }[] =
    []
  /** What was done, for who wants to know why it failed. */
  readonly trace: string[] = []
  /** Answers of servers that do not say what is so. */
  readonly lies = new Map<ServerName, Answers>()
  /** The join by which a server last came into a room that none of its users was in. */
  readonly arrivals = new Map<string, EventId>()
  readonly #sentUpTo = new Map<string, number>()
  readonly #audience = new Map<string, ReadonlySet<ServerName>>()
  readonly #held = new Map<string, string[]>()
  #sent = 0

  constructor(servers: readonly SimulatedServer[], seed: number) {
    this.seed = seed
    this.dice = new Dice(seed)
    this.network = new Network(this.dice, FIRST_MOMENT + seed * RUN_SPAN_MS)
    this.servers = new Map(servers.map((server) => [server.name, server]))
  }

  get names(): readonly ServerName[] {
    return [...this.servers.keys()]
  }

  answersOf(server: ServerName): Answers {
    return this.lies.get(server) ?? honestAnswers(this.servers.get(server)!.engine.resident)
  }

  asked(from: ServerName, of: ServerName, kind: keyof FederationQueries): void {
    this.questions.push({ from, of, kind })
  }

  user(name: string, server: SimulatedServer): UserId {
    return `@s${this.seed}-${name}:${server.name}` as UserId
  }

  serverOf(userId: UserId): SimulatedServer {
    return this.servers.get(serverOf(userId))!
  }

  /** Something that a user does on their own server. Others are told of what came of it. */
  async does<T>(userId: UserId, roomId: RoomId, action: (rooms: Rooms, by: Requester) => Promise<T>): Promise<T> {
    const server = this.serverOf(userId)
    const done = await action(server.engine.services.rooms, await server.as(userId))
    await this.relay(server, roomId)
    return done
  }

  say(userId: UserId, roomId: RoomId, body: string): Promise<EventId> {
    return this.does(userId, roomId, (rooms, by) =>
      rooms.send(by, roomId, 'm.room.message', said({ msgtype: 'm.text', body }), this.transaction()),
    )
  }

  transaction(): { txnId: string; path: string } {
    const txnId = `${this.seed}-${++this.#sent}`
    return { txnId, path: `sim/${txnId}` }
  }

  /** Tells the other servers in the room what this one's users did since it last told them. */
  async relay(server: SimulatedServer, roomId: RoomId): Promise<void> {
    const place = `${server.name} ${roomId}`
    const before = this.#audience.get(place) ?? []
    const audience = await this.serversIn(server, roomId)
    this.#audience.set(place, audience)
    const made = await madeSince(server.db, roomId, server.name, this.#sentUpTo.get(place) ?? 0)
    if (made.length === 0) return
    this.#sentUpTo.set(place, made.at(-1)!.event_nid)
    for (const { event_id, json } of made)
      this.trace.push(`  ${event_id} on ${prevIdsOf(JSON.parse(json) as Pdu).join(' ')}`)
    const texts = made.map(({ json }) => json)
    for (const to of new Set([...before, ...audience])) this.post(server, to, roomId, texts)
  }

  async serversIn(server: SimulatedServer, roomId: RoomId): Promise<Set<ServerName>> {
    const members = await memberships(server.db, roomId)
    return new Set([...members].filter(([, membership]) => membership === 'join').map(([userId]) => serverOf(userId)))
  }

  /** Puts events on their way, now and then kept back to go with later ones, in any order. */
  post(from: SimulatedServer, to: ServerName, roomId: RoomId, texts: readonly string[]): void {
    const receiver = this.servers.get(to)
    if (!receiver || receiver === from) return
    const link = `${from.name} ${to} ${roomId}`
    const all = [...(this.#held.get(link) ?? []), ...texts]
    this.#held.delete(link)
    if (this.network.conditions.loss > 0 && this.dice.chance(0.2)) {
      this.#held.set(link, all)
      return
    }
    const transaction = this.dice.shuffled(all)
    this.network.send(from.name, to, async () => {
      await this.receive(receiver, from.name, roomId, transaction)
    })
  }

  async receive(
    server: SimulatedServer,
    origin: ServerName,
    roomId: RoomId,
    texts: readonly string[],
  ): Promise<readonly Received[]> {
    const received = await server.engine.receiver.receive(origin, roomId, texts.map(parsed))
    for (const one of received) {
      if (one.kind === 'accepted' || one.kind === 'known') continue
      this.trace.push(`  ${server.name} < ${origin}: ${one.eventId} ${one.kind}: ${one.reason}`)
    }
    return received
  }

  /**
   * What a user does in a room that their server is not in: another server gives a template, ours builds the event from it, and the
   * other takes it in and tells of it. False when nothing came of it.
   *
   * @throws ProtocolError when the other server refuses
   */
  async doesFromOutside(
    userId: UserId,
    roomId: RoomId,
    membership: 'join' | 'leave' | 'knock',
    resident: SimulatedServer,
  ): Promise<boolean> {
    const server = this.serverOf(userId)
    const wanted = { type: 'm.room.member', sender: userId, stateKey: userId, content: { membership } } as const
    const template = await this.network.ask(
      server.name,
      resident.name,
      () => resident.engine.resident.template(roomId, wanted),
      undefined,
    )
    const version = template && roomVersion(template.roomVersion)
    if (!template || !version) return false
    const built = buildFromTemplate(
      { serverName: server.name, signingKey: server.signingKey, clock: virtualClock, random: seededRandom },
      { version, roomId, userId, membership, content: {} },
      template.event,
    )
    await this.network.pass(this.dice.below(100))
    const known = await server.engine.registry.get(roomId)
    // Every other run's rooms are joined without their members, which are there before anything else happens.
    const omitsMembers = this.seed % 2 === 0 && (known?.pending.extremities.length ?? 0) === 0
    const answer = await this.network.ask(
      server.name,
      resident.name,
      () => this.#takeIn(resident, server.name, roomId, built, omitsMembers),
      undefined,
    )
    if (!answer || membership !== 'join' || !this.network.areLinked(server.name, resident.name)) return false
    const key = resident.signingKey
    const join = withAuthoriser(version, built, answer.event.value, new Map([[key.keyId, key.publicKey]]))
    const { areMembersOmitted } = answer
    const claimed = { areMembersOmitted, ...listsOf(answer) }
    const wasIn = (await this.serversIn(server, roomId)).has(server.name)
    const outcome = await server.engine.processJoin(resident.name, version, roomId, parsed(join), claimed)
    this.trace.push(`  ${server.name} takes the join ${built.eventId}: ${outcome.kind} ${outcome.reason ?? ''}`)
    if (omitsMembers) await this.#fill(server, roomId)
    if (outcome.kind === 'accepted' && !wasIn) this.arrivals.set(`${server.name} ${roomId}`, built.eventId)
    // Its own join was told to the others by the resident server.
    const made = await madeSince(server.db, roomId, server.name, 0)
    this.#sentUpTo.set(`${server.name} ${roomId}`, made.at(-1)?.event_nid ?? 0)
    return outcome.kind === 'accepted' || outcome.kind === 'known'
  }

  /** Has the members fetched that were left out. */
  async #fill(server: SimulatedServer, roomId: RoomId): Promise<void> {
    server.peers.state = async (of, ...at) => {
      const claimed = await this.servers.get(of as ServerName)!.engine.resident.stateAt(...at)
      if (!claimed) throw new ProtocolError('M_NOT_FOUND', 'There is no such event here.')
      return listsOf(claimed)
    }
    const { registry } = server.engine
    const partialState = (await registry.get(roomId))?.partialState
    if (!partialState?.holdsEvents) return
    server.startResync()
    await partialState.whole
    while (partialState.holdsEvents) await setImmediate()
  }

  /** The other side of it: `PUT send_join`, `send_leave`, `send_knock`. */
  async #takeIn(
    resident: SimulatedServer,
    origin: ServerName,
    roomId: RoomId,
    { json, eventId }: Pick<BuiltEvent, 'json' | 'eventId'>,
    omitsMembers: boolean,
  ) {
    const { engine } = resident
    const event = await engine.resident.countersign(roomId, parsed(json))
    const audience = await this.serversIn(resident, roomId)
    const [received] = await engine.receiver.receive(origin, roomId, [event])
    if (received?.kind !== 'accepted' && received?.kind !== 'known') {
      this.trace.push(`  ${resident.name} refuses ${eventId}: ${received?.kind} ${received?.reason}`)
      return undefined
    }
    const [stored] = await engine.resident.events(roomId, [eventId])
    for (const to of audience) if (to !== origin) this.post(resident, to, roomId, [stored!.json])
    const answer = await engine.resident.joinAnswer(roomId, eventId, omitsMembers)
    return answer && { event, ...answer }
  }
}

export function said(content: JsonObject): { content: JsonObject; offence: undefined } {
  return { content, offence: undefined }
}

const listsOf = ({
  state,
  authChain,
}: {
  readonly state: readonly string[]
  readonly authChain: readonly string[]
}) => ({
  state: state.map(parsed),
  authChain: authChain.map(parsed),
})

export function parsed(text: string): ReadJson {
  return readExactJson(text)
}
