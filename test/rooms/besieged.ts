import { expect } from 'vitest'
import { compileFilter, type Filter } from '../../src/core/filter.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { auditRoom } from '../../src/domain/room-audit/room-audit.ts'
import type { Rooms } from '../../src/domain/rooms/act/rooms.ts'
import type { Received } from '../../src/domain/rooms/receive/received.ts'
import { type RoomView, viewRoom } from '../federation/room-view.ts'
import { Run, said } from '../federation/run.ts'
import { type SimulatedServer, startSimulatedServer } from '../federation/server.ts'
import { type Answers, within } from '../federation/world.ts'
import { readAnswer } from '../support/sent-answer.ts'
import type { Forge } from './forge.ts'
import type { ForgedState } from './forged-state.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a client is answered
type Json = any

export const HOME = 'home.test' as ServerName
export const EVIL = 'evil.test' as ServerName

/** A server of ours, alone with servers that a test speaks for. */
export class Besieged {
  readonly server: SimulatedServer
  readonly run: Run
  #sent = 0

  constructor(server: SimulatedServer) {
    this.server = server
    this.run = new Run([server], 1)
  }

  static async open(): Promise<Besieged> {
    return new Besieged(await startSimulatedServer(HOME))
  }

  close(): Promise<void> {
    return this.server.close()
  }

  user(name: string): UserId {
    return `@${name}:${HOME}` as UserId
  }

  /** From here on another server answers so. */
  answers(answers: Answers, server: ServerName = EVIL): void {
    this.run.lies.set(server, answers)
  }

  inRun<T>(work: () => Promise<T>): Promise<T> {
    return within(this.run, work)
  }

  receive(forge: Forge, ids: readonly EventId[], origin: ServerName = EVIL): Promise<readonly Received[]> {
    return this.inRun(() => this.server.engine.receiver.receive(origin, forge.roomId, forge.raw(ids)))
  }

  /** The kinds of what became of events. */
  async kinds(forge: Forge, ids: readonly EventId[], origin: ServerName = EVIL): Promise<string[]> {
    return (await this.receive(forge, ids, origin)).map(({ kind }) => kind)
  }

  /** A user of ours comes into a room of others. */
  async takeJoin(forge: Forge, name: string, state: ForgedState = forge.states.get(forge.latest!)!): Promise<EventId> {
    const join = forge.member(this.user(name), 'join', { state })
    const received = await this.inRun(() =>
      this.server.engine.processJoin(EVIL, forge.version, forge.roomId, forge.raw([join])[0]!, forge.shown(state)),
    )
    expect(received).toEqual({ kind: 'accepted', eventId: join })
    return join
  }

  /** A user of ours comes into a room that others of ours are in. */
  takeLocalJoin(name: string, roomId: RoomId): Promise<unknown> {
    return this.does(name, (rooms, by) => rooms.join(by, roomId, {}))
  }

  async does<T>(name: string, action: (rooms: Rooms, by: Json) => Promise<T>): Promise<T> {
    const by = await this.server.as(this.user(name))
    return this.inRun(() => action(this.server.engine.services.rooms, by))
  }

  async createRoom(name: string, version: RoomVersion, request: Json = {}): Promise<RoomId> {
    const wish = { preset: 'public_chat', room_version: version.id, ...request }
    return (await this.does(name, (rooms, by) => rooms.create(by, wish, undefined))).roomId
  }

  say(name: string, roomId: RoomId, body: string): Promise<EventId> {
    const txnId = `${++this.#sent}`
    return this.does(name, (rooms, by) =>
      rooms.send(by, roomId, 'm.room.message', said({ msgtype: 'm.text', body }), { txnId, path: `send/${txnId}` }),
    )
  }

  set(name: string, roomId: RoomId, type: string, content: JsonObject, key = ''): Promise<EventId> {
    return this.does(name, (rooms, by) => rooms.setState(by, roomId, type, key, said(content)))
  }

  async sync(name: string, since?: string, wish: { filter?: Filter; timeoutMs?: number; after?: boolean } = {}) {
    const by = await this.server.as(this.user(name))
    const answer = await this.inRun(async () =>
      this.server.engine.services.sync.sync(by, {
        since,
        filter: compileFilter(wish.filter),
        fullState: false,
        timeoutMs: wish.timeoutMs ?? 0,
        stateAfter: wish.after ? 'state_after' : undefined,
        presence: 'offline',
        signal: new AbortController().signal,
      }),
    )
    return readAnswer(answer)
  }

  async view(roomId: RoomId): Promise<RoomView> {
    return (await viewRoom(this.server.db, roomId))!
  }

  standing(view: RoomView, id: EventId): string | undefined {
    const event = view.events.get(id)
    return event && (event.standing ?? 'accepted')
  }

  /** Everything that is stored of a room is what its events say. */
  async audit(roomId: RoomId): Promise<void> {
    const { roomNid } = await this.view(roomId)
    const findings: string[] = []
    await auditRoom({
      db: this.server.db,
      roomNid,
      knownKeys: () => [],
      found: ({ eventId, what }) => findings.push(`${eventId ?? 'room'}: ${what}`),
      progress: () => undefined,
    })
    expect(findings).toEqual([])
  }
}

export const idsIn = (section: Json): EventId[] => section.events.map((event: Json) => event.event_id)
