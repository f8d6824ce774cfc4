import { authEventKeys } from '../../src/core/auth/select.ts'
import { type BuiltEvent, buildEvent } from '../../src/core/event/build.ts'
import type { Pdu } from '../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { roomIdOfCreate } from '../../src/core/signing/event-hash.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { CREATOR, FORMER, type MalformedFixture, MEMBER, THIRD_PARTY_INVITE } from './malformed.ts'

export const TS = 1_700_000_000_000

export const KEYS = {
  'alpha.test': signingKeyFromSeed('ed25519:a', Buffer.alloc(32, 1)),
  'beta.test': signingKeyFromSeed('ed25519:b', Buffer.alloc(32, 2)),
  'gamma.test': signingKeyFromSeed('ed25519:c', Buffer.alloc(32, 3)),
  'delta.test': signingKeyFromSeed('ed25519:d', Buffer.alloc(32, 4)),
} as const satisfies { readonly [server: string]: SigningKey }

type State = ReadonlyMap<string, BuiltEvent>

export const stateKeyOf = (type: string, stateKey: string): string => `${type}|${stateKey}`

/** The room of {@link MalformedFixture} as its events alone, without a server; and, but for itself, the other room of that fixture. */
export class MalformedRoom {
  readonly fixture: MalformedFixture
  readonly other: MalformedRoom | undefined
  readonly events = new Map<EventId, BuiltEvent>()
  /** The state after each event. */
  readonly states = new Map<EventId, State>()
  readonly #version: RoomVersion
  readonly #name: string
  #roomId: RoomId | undefined
  #latest: BuiltEvent | undefined

  /**
   * @param name part of its ids: rooms that one server knows need names of their own
   * @param watcher somebody besides, whom the creator invites before all others
   */
  constructor(version: RoomVersion, name = 'room', watcher?: string, isOther = false) {
    this.#version = version
    this.#name = name
    this.other = isOther ? undefined : new MalformedRoom(version, `other-${name}`, watcher, true)
    this.#roomId = version.roomIdIsCreateHash ? undefined : (`!${name}:alpha.test` as RoomId)
    const create = this.#add('m.room.create', CREATOR, '', {
      room_version: version.id,
      creator: CREATOR,
      'x.name': name,
    })
    const roomId = this.#roomId ?? roomIdOfCreate(create.eventId)
    this.#roomId = roomId
    const creator = this.#member(CREATOR, 'join')
    const levels = this.#add('m.room.power_levels', CREATOR, '', {
      users: version.creatorsAreInfinite ? {} : { [CREATOR]: 100 },
      invite: 50,
      events: { 'x.open': 0 },
    })
    const joinRules = this.#add('m.room.join_rules', CREATOR, '', { join_rule: 'invite' })
    if (watcher !== undefined) {
      this.#member(watcher, 'invite', CREATOR)
      this.#member(watcher, 'join')
    }
    this.#member(MEMBER, 'invite', CREATOR)
    const member = this.#member(MEMBER, 'join')
    this.#member(FORMER, 'invite', CREATOR)
    const former = this.#member(FORMER, 'join')
    const ban = this.#member(FORMER, 'ban', CREATOR)
    const invitation = this.#add('m.room.third_party_invite', CREATOR, 'token', THIRD_PARTY_INVITE)
    const own = { create: create.reference, levels: levels.reference }
    const { create: otherCreate, levels: otherLevels } = this.other?.fixture.references ?? own
    const references = {
      create: create.reference,
      creator: creator.reference,
      levels: levels.reference,
      joinRules: joinRules.reference,
      member: member.reference,
      former: former.reference,
      ban: ban.reference,
      invitation: invitation.reference,
      otherCreate,
      otherLevels,
    }
    const [beta, gamma] = [KEYS['beta.test'], KEYS['gamma.test']]
    this.fixture = {
      version,
      roomId,
      references,
      latest: [invitation.reference],
      depth: this.events.size,
      ts: TS,
      beta,
      gamma,
      label: name === 'room' ? '' : name,
    }
  }

  /** The room's state as it stands. */
  get current(): State {
    return this.states.get(this.#latest!.eventId)!
  }

  #member(user: string, membership: string, sender = user): BuiltEvent {
    return this.#add('m.room.member', sender, user, { membership })
  }

  #add(type: string, sender: string, stateKey: string, content: JsonObject): BuiltEvent {
    const server = sender.slice(sender.indexOf(':') + 1) as keyof typeof KEYS
    const before: State = this.#latest ? this.current : new Map()
    const sketch = { type, sender: sender as UserId, state_key: stateKey, content }
    const cited = authEventKeys(this.#version, sketch).map(([of, key]) => before.get(stateKeyOf(of, key)))
    const built = buildEvent(
      this.#version,
      {
        ...sketch,
        ...(this.#roomId === undefined ? {} : { room_id: this.#roomId }),
        event_id: `$${this.#name}-${this.events.size}:${server}` as EventId,
        origin_server_ts: TS - 1000 + this.events.size,
        depth: this.events.size + 1,
        prev_events: this.#latest ? [this.#latest.reference] : [],
        auth_events: cited.filter((event) => event !== undefined).map(({ reference }) => reference),
      },
      server as string as ServerName,
      KEYS[server],
    )
    this.events.set(built.eventId, built)
    this.states.set(built.eventId, new Map([...before, [stateKeyOf(type, stateKey), built]]))
    this.#latest = built
    return built
  }
}

/** What the rules ask of a state. */
export function lookupIn(state: State): (type: string, stateKey: string) => Pdu | undefined {
  return (type, stateKey) => state.get(stateKeyOf(type, stateKey))?.pdu
}
