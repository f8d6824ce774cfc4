import { authEventKeys } from '../../src/core/auth/select.ts'
import { type BuiltEvent, buildEvent } from '../../src/core/event/build.ts'
import { compileFilter, MATCH_ALL } from '../../src/core/filter.ts'
import type { EventId, RoomId, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { type RoomVersion, roomVersion } from '../../src/core/room-version.ts'
import { referenceTo } from '../../src/core/signing/event-hash.ts'
import { readAnswer } from '../support/sent-answer.ts'
import { type RoomView, viewRoom } from './room-view.ts'
import { Run, said } from './run.ts'
import { type SimulatedServer, startSimulatedServer } from './server.ts'
import { within } from './world.ts'

/** Three servers with a user each in one public room, over a network that works as long as the test lets it. */
export interface Party {
  readonly run: Run
  readonly version: RoomVersion
  readonly roomId: RoomId
  readonly alpha: SimulatedServer
  readonly beta: SimulatedServer
  readonly gamma: SimulatedServer
  /** Of alpha, made the room; of beta; of gamma. */
  readonly ann: UserId
  readonly bob: UserId
  readonly cid: UserId
}

export interface Stage {
  /** Runs a test in a room of its own. */
  play(version: string, test: (party: Party) => Promise<void>): Promise<void>
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const servers = await Promise.all(['alpha.test', 'beta.test', 'gamma.test'].map(startSimulatedServer))
  let parties = 0
  return {
    async play(version, test) {
      const run = new Run(servers, ++parties)
      await within(run, async () => test(await gather(run, roomVersion(version)!)))
    },
    async close() {
      for (const server of servers) await server.close()
    },
  }
}

async function gather(run: Run, version: RoomVersion): Promise<Party> {
  const [alpha, beta, gamma] = [...run.servers.values()]
  const [ann, bob, cid] = [run.user('ann', alpha!), run.user('bob', beta!), run.user('cid', gamma!)]
  const { roomId } = await alpha!.engine.services.rooms.create(
    await alpha!.as(ann),
    { preset: 'public_chat', room_version: version.id },
    undefined,
  )
  for (const user of [bob, cid]) {
    if (!(await run.doesFromOutside(user, roomId, 'join', alpha!))) throw new Error(run.trace.join('\n'))
    await run.network.settle()
  }
  await run.relay(alpha!, roomId)
  await run.network.settle()
  return { run, version, roomId, alpha: alpha!, beta: beta!, gamma: gamma!, ann, bob, cid }
}

export async function viewOf({ roomId }: Pick<Party, 'roomId'>, server: SimulatedServer): Promise<RoomView> {
  return (await viewRoom(server.db, roomId))!
}

export function setState(
  { run, roomId }: Party,
  user: UserId,
  type: string,
  content: JsonObject,
  stateKey = '',
): Promise<EventId> {
  return run.does(user, roomId, (rooms, by) => rooms.setState(by, roomId, type, stateKey, said(content)))
}

/** The JSON of an event as its server gives it. */
export async function textOf({ roomId }: Party, server: SimulatedServer, eventId: EventId): Promise<string> {
  return (await server.engine.resident.events(roomId, [eventId]))[0]!.json
}

/** What a test wants an event to say; the rest is as an honest server would have it. */
export interface Wanted {
  readonly type?: string
  readonly stateKey?: string
  readonly content?: JsonObject
  readonly roomId?: RoomId
  readonly prev?: readonly EventId[]
  readonly eventId?: string
  readonly depth?: number
}

/** An event that a user's server builds and signs without looking at the rules, on the room as `server` has it. */
export async function forge(
  party: Party,
  user: UserId,
  server: SimulatedServer,
  wanted: Wanted = {},
): Promise<BuiltEvent> {
  const { run, version, roomId } = party
  const view = await viewOf(party, server)
  const { type = 'm.room.message', content = { msgtype: 'm.text', body: 'forged' }, stateKey } = wanted
  const said = { type, sender: user, content, ...(stateKey === undefined ? {} : { state_key: stateKey }) }
  const refer = (id: EventId) => {
    const event = view.events.get(id)
    if (event) return referenceTo(version, event.pdu)
    return version.referencesCarryHashes ? ([id, { sha256: 'unknown' }] as [EventId, { sha256: string }]) : id
  }
  const auth = authEventKeys(version, said).flatMap((key) => view.state.get(key.join(' ')) ?? [])
  const own = run.serverOf(user)
  return buildEvent(
    version,
    {
      ...said,
      room_id: wanted.roomId ?? roomId,
      origin_server_ts: run.network.now,
      depth: wanted.depth ?? view.events.size,
      prev_events: (wanted.prev ?? view.extremities).map(refer),
      auth_events: auth.map(refer),
      ...(version.eventIdFormat === 'opaque'
        ? { event_id: (wanted.eventId ?? `$${run.dice.bytes(12).toString('base64url')}:${own.name}`) as EventId }
        : {}),
    },
    own.name,
    own.signingKey,
  )
}

interface ClientEvent {
  readonly event_id: EventId
  readonly type: string
  readonly content: JsonObject
}

/** What a user's client is shown of the room's timeline, oldest first: by an initial sync and by paging back from it. */
export async function shownTo({ run, roomId }: Party, user: UserId): Promise<{ synced: EventId[]; paged: EventId[] }> {
  const server = run.serverOf(user)
  const by = await server.as(user)
  const { sync, roomReader } = server.engine.services
  const answer = await sync.sync(by, {
    since: undefined,
    filter: compileFilter({ room: { timeline: { limit: 100 } } }),
    fullState: false,
    timeoutMs: 0,
    stateAfter: undefined,
    presence: 'offline',
    signal: new AbortController().signal,
  })
  const synced = (await readAnswer(answer)).rooms.join[roomId].timeline.events as ClientEvent[]
  const query = { direction: 'b', from: undefined, to: undefined, limit: 100, filter: MATCH_ALL } as const
  const page = await roomReader.messages(by, roomId, query)
  const paged = JSON.parse(page.toBuffer().toString()).chunk as ClientEvent[]
  return { synced: synced.map((event) => event.event_id), paged: paged.map((event) => event.event_id).reverse() }
}
