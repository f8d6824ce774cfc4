import { expect } from 'vitest'
import type { ProtocolError } from '../../../src/core/errors.ts'
import { type Pdu, referencedId } from '../../../src/core/event/format.ts'
import { compileFilter, MATCH_ALL } from '../../../src/core/filter.ts'
import type { EventId, RoomId, ServerName } from '../../../src/core/ids.ts'
import type { JsonBytes } from '../../../src/core/json-bytes.ts'
import { eventIdOf, referenceTo } from '../../../src/core/signing/event-hash.ts'
import { auditRoom } from '../../../src/domain/room-audit/room-audit.ts'
import type { Resident } from '../../../src/domain/rooms/remote/resident.ts'
import { prevIdsOf } from '../../../src/domain/rooms/room/event-references.ts'
import { type HeldEvent, type RoomView, viewRoom } from '../../federation/room-view.ts'
import type { Json } from '../../support/api.ts'
import { KEYS, TS } from '../../support/malformed-room.ts'
import { readAnswer } from '../../support/sent-answer.ts'
import type { WatchedServer } from './server.ts'
import type { WatchedRoom } from './watched-room.ts'

/**
 * Looks for malformed events everywhere: in the database, in what users of the server and other servers are given, in what the server
 * builds its own events on, and in what all this is after a restart.
 *
 * @param forged ids under which malformed events came
 */
export async function inspect(server: WatchedServer, room: WatchedRoom, forged: readonly EventId[]): Promise<void> {
  const refused = [...new Set(forged)].filter((id) => !room.accepted.has(id))
  const { engine } = server
  expect(server.errors).toEqual([])
  const view = await inspectRows(server, room)
  await inspectAnswers(engine.resident, room, view, refused)
  await inspectClient(server, room, refused)
  const before = room.latest.map(referencedId)
  const own = await mustSpeak(server, room.id)
  expect(new Set(own.prev)).toEqual(new Set(before))
  expect(own.standing).toBe(null)
  room.took({ kind: 'accepted' }, referenceTo(room.version, own.pdu), own.pdu)
  await inspectRows(server, room)
  // What is in memory was built on what was pending.
  expect(await stateInMemory(server, room)).toEqual(new Set(room.state.values()))
  await auditAll(server, room)
}

/** The server's own user can go on. */
export async function mustSpeak({ engine, watcher, db }: WatchedServer, roomId: RoomId): Promise<HeldEvent> {
  const said = await engine.services.rooms.send(
    watcher,
    roomId,
    'm.room.message',
    { content: { msgtype: 'm.text', body: 'all is well' }, offence: undefined },
    { txnId: 'well', path: `${roomId}/well` },
  )
  return (await viewRoom(db, roomId))!.events.get(said)!
}

/** After a restart nothing has changed. */
export async function inspectLoaded(server: WatchedServer, room: WatchedRoom): Promise<void> {
  await inspectRows(server, room)
  expect(await stateInMemory(server, room)).toEqual(new Set(room.state.values()))
}

async function inspectRows({ db }: WatchedServer, room: WatchedRoom): Promise<RoomView> {
  const view = (await viewRoom(db, room.id))!
  const accepted = [...view.events.values()].filter(({ standing }) => standing === null)
  expect(new Set(accepted.map(({ id }) => id))).toEqual(room.accepted)
  expect(accepted.every(({ isInTimeline }) => isInTimeline)).toBe(true)
  expect([...view.events.values()].filter(({ standing, isInTimeline }) => standing !== null && isInTimeline)).toEqual(
    [],
  )
  expect(new Set(view.extremities)).toEqual(new Set(room.latest.map(referencedId)))
  expect(Object.fromEntries(view.state)).toEqual(Object.fromEntries(room.state))
  return view
}

/** Other servers are given what was accepted, and what they name that was soft-failed or is part of an auth chain. */
async function inspectAnswers(
  resident: Resident,
  room: WatchedRoom,
  view: RoomView,
  refused: readonly EventId[],
): Promise<void> {
  const mayName = (id: EventId) => isNamed(view.events.get(id))
  const idsIn = (texts: readonly string[]) => texts.map((text) => eventIdOf(room.version, JSON.parse(text) as Pdu))
  for (let at = 0; at < refused.length; at += 50) {
    const some = refused.slice(at, at + 50)
    const named = [
      ...(await resident.events(room.id, some)),
      ...(await resident.backfill(room.id, some, 100)),
      ...(await resident.missingEvents(room.id, { earliest: [], latest: some, limit: 100 })),
    ]
    expect(idsIn(named.map(({ json }) => json)).filter((id) => !mayName(id))).toEqual([])
  }
  for (const id of refused) {
    const shown = await resident.stateIds(room.id, id)
    if (view.events.get(id)?.standing !== 'soft-failed') expect(shown).toBe(undefined)
  }
  const latest = room.latest.map(referencedId)
  const walked = await walkBack(resident, room, latest)
  expect(walked.filter((id) => !mayName(id))).toEqual([])
  for (const id of latest) {
    const shown = (await resident.stateIds(room.id, id))!
    const inState = new Set(room.state.values())
    expect(shown.authChain.filter((one) => !mayName(one))).toEqual([])
    const before = await view.stateBefore(view.events.get(id)!)
    expect(new Set(shown.state)).toEqual(new Set(before.values()))
    if (view.events.get(id)!.pdu.state_key === undefined) expect(new Set(shown.state)).toEqual(inState)
    const answer = (await resident.stateAt(room.id, id))!
    expect(new Set(idsIn(answer.state))).toEqual(new Set(shown.state))
    expect(new Set(idsIn(answer.authChain))).toEqual(new Set(shown.authChain))
  }
}

function isNamed(event: HeldEvent | undefined): boolean {
  return event !== undefined && event.standing !== 'rejected'
}

async function walkBack(resident: Resident, room: WatchedRoom, latest: readonly EventId[]): Promise<EventId[]> {
  const found = new Set<EventId>()
  for (let front: readonly EventId[] = latest; front.length > 0; ) {
    const events = await resident.backfill(room.id, front, 100)
    const pdus = events.map(({ json }) => JSON.parse(json) as Pdu)
    const fresh = pdus.filter((pdu) => !found.has(eventIdOf(room.version, pdu)))
    for (const pdu of fresh) found.add(eventIdOf(room.version, pdu))
    front = [...new Set(fresh.flatMap(prevIdsOf))].filter((id) => !found.has(id)).slice(0, 100)
  }
  return [...found]
}

async function inspectClient(server: WatchedServer, room: WatchedRoom, refused: readonly EventId[]): Promise<void> {
  const { engine, watcher } = server
  const { roomReader, sync } = engine.services
  const synced = new Set<string>()
  const answer = await sync.sync(watcher, {
    since: undefined,
    filter: compileFilter({ room: { rooms: [room.id], timeline: { limit: 1000 } } }),
    fullState: true,
    timeoutMs: 0,
    stateAfter: undefined,
    presence: 'offline',
    signal: AbortSignal.timeout(60_000),
  })
  collect(await readAnswer(answer), synced)
  const known = new Set<string>([
    ...room.accepted,
    ...room.base.events.keys(),
    ...room.state.values(),
    ...room.shownState,
  ])
  expect([...synced].filter((id) => !known.has(id))).toEqual([])
  expect([...room.state.values()].filter((id) => !synced.has(id))).toEqual([])
  expect(await stateInMemory(server, room)).toEqual(new Set(room.state.values()))
  const paged = new Set<string>()
  for (let from: string | undefined, more = true; more; ) {
    const query = { direction: 'b', from, to: undefined, limit: 1000, filter: MATCH_ALL } as const
    const page = jsonFrom(await roomReader.messages(watcher, room.id, query))
    collect(page, paged)
    from = page.end
    more = from !== undefined
  }
  expect(paged).toEqual(room.accepted)
  for (const id of refused) {
    const got = await roomReader.event(watcher, room.id, id).catch((error: unknown) => error)
    expect((got as ProtocolError).errcode).toBe('M_NOT_FOUND')
  }
}

function jsonFrom(bytes: JsonBytes): Json {
  return JSON.parse(bytes.toBuffer().toString())
}

async function stateInMemory({ engine, watcher }: WatchedServer, room: WatchedRoom): Promise<Set<string>> {
  const state = jsonFrom(await engine.services.roomReader.state(watcher, room.id)) as Json[]
  return new Set(state.map(({ event_id }) => event_id))
}

/** The ids of all events in an answer. */
function collect(value: Json, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  if (typeof value.event_id === 'string' && typeof value.type === 'string') found.add(value.event_id)
  for (const each of Object.values(value)) collect(each, found)
}

const keysOf = (server: ServerName) => {
  const key = Object.hasOwn(KEYS, server) ? KEYS[server as string as keyof typeof KEYS] : undefined
  return key ? [{ keyId: key.keyId, publicKey: key.publicKey, validUntilTs: TS + 7 * 86_400_000 }] : []
}

/** Everything that is stored of the room is right by a check from scratch. */
export async function auditAll({ db }: Pick<WatchedServer, 'db'>, { id }: Pick<WatchedRoom, 'id'>): Promise<void> {
  const view = (await viewRoom(db, id))!
  const findings: string[] = []
  await auditRoom({
    db,
    roomNid: view.roomNid,
    knownKeys: keysOf,
    found: ({ eventId, what }) => {
      // No rule says that the hash beside an id in `prev_events` and `auth_events` has to be right.
      if (!what.endsWith('by a wrong hash')) findings.push(`${eventId}: ${what}`)
    },
    progress: () => undefined,
  })
  expect(findings).toEqual([])
}
