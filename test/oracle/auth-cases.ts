import { authEventKeys, type CitedEvent } from '../../src/core/auth/select.ts'
import { type Pdu, referencedId } from '../../src/core/event/format.ts'
import { type EventId, serverOf } from '../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import {
  contentHash,
  eventIdOf,
  hashedEventId,
  referenceTo,
  roomIdOfCreate,
} from '../../src/core/signing/event-hash.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { SeededRandom } from '../core/state/random.ts'

const CREATOR = '@creator:here.example'
const USERS = [CREATOR, '@alice:here.example', '@bob:there.example', '@carol:there.example', '@dave:here.example']
const IDENTITY = signingKeyFromSeed('ed25519:0', Buffer.alloc(32, 7))
const IMPOSTOR = signingKeyFromSeed('ed25519:0', Buffer.alloc(32, 8))
const JOIN_RULES = ['public', 'public', 'invite', 'invite', 'knock', 'restricted', 'knock_restricted', 'private']
const NAMED = ['users_default', 'events_default', 'state_default', 'ban', 'redact', 'kick', 'invite']
const TYPES = ['m.room.message', 'm.room.topic', 'x.state', 'm.room.power_levels']
const ODD: readonly JsonValue[] = ['x', null, [], {}, true, '', '1.5']

/** An event, the state it is judged by, and the auth events it names. */
export interface AuthCase {
  readonly event: Pdu
  readonly state: ReadonlyMap<string, Pdu>
  readonly cited: readonly CitedEvent[]
}

export const stateKeyOf = (type: string, stateKey: string): string => `${type}|${stateKey}`

interface Sketch {
  readonly type: string
  readonly sender: string
  readonly state_key?: string
  readonly content: JsonObject
  readonly [key: string]: JsonValue
}

/** A random room, as its state, and random events on it: mostly well-formed, near the borders of what is allowed. */
export class RandomAuthRoom {
  readonly #version: RoomVersion
  readonly #random: SeededRandom
  readonly #state = new Map<string, Pdu>()
  readonly #create: Pdu
  readonly #roomId: string
  #made = 0

  constructor(version: RoomVersion, random: SeededRandom) {
    this.#version = version
    this.#random = random
    this.#create = this.#pdu(
      { type: 'm.room.create', sender: CREATOR, state_key: '', content: this.#createContent() },
      [],
    )
    this.#roomId = version.roomIdIsCreateHash ? roomIdOfCreate(eventIdOf(version, this.#create)) : '!room:here.example'
    this.#keep(this.#create)
    for (const user of USERS) if (random.chance(0.85)) this.#set(this.#memberOf(user))
    if (random.chance(0.85)) this.#set(this.#stateOf('m.room.power_levels', this.#levels()))
    if (random.chance(0.85)) this.#set(this.#stateOf('m.room.join_rules', { join_rule: random.pick(JOIN_RULES) }))
    if (random.chance(0.6)) this.#set({ ...this.#thirdPartyInvite(), state_key: 'token' })
  }

  case(): AuthCase {
    const event = this.#event()
    const cited = this.#cite(event)
    const auth_events = cited.map(({ pdu }) => referenceTo(this.#version, pdu))
    return { event: this.#finished({ ...event, auth_events }), state: this.#state, cited }
  }

  #pick<Item>(...items: readonly Item[]): Item {
    return this.#random.pick(items)
  }

  #keep(pdu: Pdu): void {
    this.#state.set(stateKeyOf(pdu.type, pdu.state_key ?? ''), pdu)
  }

  #set(sketch: Sketch): void {
    this.#keep(this.#pdu(sketch, [this.#reference()]))
  }

  #reference(): string {
    const id = `$event${this.#random.below(1000)}:here.example`
    return this.#version.eventIdFormat === 'opaque' ? id : hashedEventId(this.#version, Buffer.alloc(32, id))
  }

  #pdu(sketch: Sketch, prev: readonly string[]): Pdu {
    const { referencesCarryHashes, eventIdFormat, roomIdIsCreateHash } = this.#version
    const isRoomless = sketch.type === 'm.room.create' && roomIdIsCreateHash
    return this.#finished({
      ...(isRoomless ? {} : { room_id: this.#roomId ?? '!room:here.example' }),
      ...(eventIdFormat === 'opaque' ? { event_id: `$made${++this.#made}:${serverOf(sketch.sender)}` } : {}),
      origin_server_ts: 1_000 + this.#random.below(1000),
      depth: 5,
      prev_events: prev.map((id) => (referencesCarryHashes ? [id as EventId, { sha256: 'AAAA' }] : (id as EventId))),
      auth_events: [],
      signatures: { [serverOf(sketch.sender)!]: { 'ed25519:1': 'AAAA' } },
      ...sketch,
    } as unknown as Pdu)
  }

  #finished(pdu: Pdu): Pdu {
    return { ...pdu, hashes: { sha256: contentHash(pdu) } }
  }

  #createContent(): JsonObject {
    const federate = this.#random.chance(0.85)
      ? {}
      : { 'm.federate': this.#pick<JsonValue>(true, false, false, 'false', null) }
    const added = this.#random.chance(0.3) ? { additional_creators: [USERS[1]!] } : {}
    return { creator: this.#pick(CREATOR, CREATOR, CREATOR, USERS[1]!), ...federate, ...added }
  }

  #memberOf(user: string): Sketch {
    const known = [...Array(8).fill('join'), 'invite', 'leave', 'ban', this.#version.knocking ? 'knock' : 'join']
    return { type: 'm.room.member', sender: user, state_key: user, content: { membership: this.#random.pick(known) } }
  }

  #stateOf(type: string, content: JsonObject): Sketch {
    return { type, sender: CREATOR, state_key: '', content }
  }

  #thirdPartyInvite(): Sketch {
    const [good, bad] = [IDENTITY.publicKey, IMPOSTOR.publicKey]
    const keys = this.#pick<JsonObject>(
      { public_key: good },
      { public_key: good, public_keys: [{ public_key: bad }] },
      { public_key: bad, public_keys: [{ public_key: good }] },
      { public_key: bad },
      {},
    )
    return { type: 'm.room.third_party_invite', sender: this.#pick(CREATOR, ...USERS), content: keys }
  }

  #level(): JsonValue {
    const level = this.#pick(0, 0, 1, 10, 49, 50, 50, 51, 100, 100, -1)
    const { powerLevelNumbers } = this.#version
    if (powerLevelNumbers === 'floats-and-strings' && this.#random.chance(0.05)) return level + 0.5
    return powerLevelNumbers !== 'integers' && this.#random.chance(0.1) ? this.#pick(`${level}`, ` ${level}  `) : level
  }

  #levelsOf(keys: readonly string[], share: number): JsonObject {
    return Object.fromEntries(keys.filter(() => this.#random.chance(share)).map((key) => [key, this.#level()]))
  }

  #levels(): JsonObject {
    const { creatorsAreInfinite } = this.#version
    return {
      ...this.#levelsOf(NAMED, 0.4),
      users: this.#levelsOf(creatorsAreInfinite ? USERS.slice(2) : USERS, 0.7),
      events: this.#levelsOf(TYPES, 0.3),
      ...(this.#random.chance(0.3) ? { notifications: this.#levelsOf(['room', 'x'], 0.7) } : {}),
    }
  }

  #event(): Pdu {
    const prev = this.#pick('one', 'one', 'one', 'two', 'create')
    const ids = { one: [this.#reference()], two: [this.#reference(), this.#reference()], create: [this.#createId()] }
    const chosen = this.#random.below(100)
    if (chosen < 45) return this.#pdu(this.#membership(), ids[prev])
    if (chosen < 68) return this.#pdu(this.#newLevels(), ids[prev])
    if (chosen < 73) return this.#newCreate()
    return this.#pdu(this.#other(), ids[prev])
  }

  #createId(): string {
    return eventIdOf(this.#version, this.#create)
  }

  #membership(): Sketch {
    const target = this.#random.pick(USERS)
    const sender = this.#random.chance(0.5) ? target : this.#random.pick(USERS)
    const membership = this.#pick<JsonValue>(
      'join',
      'join',
      'join',
      'invite',
      'invite',
      'leave',
      'leave',
      'ban',
      'knock',
      'odd',
    )
    const content: JsonObject = { membership }
    if (membership === 'invite' && this.#random.chance(0.35)) content.third_party_invite = this.#signedInvite(target)
    if (this.#random.chance(membership === 'join' ? 0.3 : 0.03))
      content.join_authorised_via_users_server = this.#random.pick(USERS)
    const authoriser = content.join_authorised_via_users_server as string | undefined
    const servers = [serverOf(sender), ...(authoriser && this.#random.chance(0.8) ? [serverOf(authoriser)] : [])]
    const signatures = Object.fromEntries(servers.map((server) => [server, { 'ed25519:1': 'AAAA' }]))
    return { type: 'm.room.member', sender, state_key: target, content, signatures }
  }

  #signedInvite(target: string): JsonObject {
    const mxid = this.#random.chance(0.9) ? target : CREATOR
    const token = this.#random.chance(0.9) ? 'token' : 'another'
    const signed: JsonObject = signJson({ mxid, token }, 'id.example', this.#pick(IDENTITY, IDENTITY, IMPOSTOR))
    if (this.#random.chance(0.05)) delete signed[this.#pick('mxid', 'signatures')]
    return { display_name: 'B', signed }
  }

  #newLevels(): Sketch {
    const current = this.#state.get(stateKeyOf('m.room.power_levels', ''))?.content ?? this.#levels()
    const content = structuredClone(current)
    const times = 1 + this.#random.below(3)
    for (let time = 0; time < times; time++) this.#changeLevels(content)
    const state_key = this.#random.chance(0.97) ? '' : 'x'
    return { type: 'm.room.power_levels', sender: this.#random.pick(USERS), state_key, content }
  }

  #changeLevels(content: JsonObject): void {
    const map = this.#pick(undefined, 'users', 'users', 'events', 'notifications')
    const key =
      map === undefined ? this.#random.pick(NAMED) : this.#random.pick(map === 'users' ? USERS : [...TYPES, 'room'])
    const target = map === undefined ? content : ((content[map] as JsonObject | undefined) ?? {})
    if (map !== undefined) content[map] = target
    if (this.#random.chance(0.2)) delete target[key]
    else target[key] = this.#random.chance(0.03) ? this.#random.pick(ODD) : this.#level()
  }

  #newCreate(): Pdu {
    const content = this.#createContent()
    if (this.#random.chance(0.2)) content.room_version = this.#pick<JsonValue>(this.#version.id, '1', 'unknown', '99')
    if (this.#random.chance(0.1)) delete content.creator
    if (this.#random.chance(0.1)) content.additional_creators = this.#pick<JsonValue>('x', [5], ['nobody'], [])
    const prev = this.#random.chance(0.1) ? [this.#reference()] : []
    // Where the room id is the event's hash, the other implementation does not even read an event that names one.
    const mayName = !this.#version.roomIdIsCreateHash && this.#random.chance(0.1)
    const named = mayName ? { room_id: this.#pick('!room:there.example', '!room:here.example') } : {}
    return this.#pdu({ type: 'm.room.create', sender: CREATOR, state_key: '', content, ...named }, prev)
  }

  #other(): Sketch {
    const sender = this.#random.pick(USERS)
    const aliases = { state_key: this.#pick('here.example', 'there.example', ''), content: { aliases: [] } }
    const redacts = this.#pick('$any:here.example', '$any:there.example')
    return this.#pick<Sketch>(
      { type: 'm.room.message', sender, content: { body: 'text' } },
      { type: 'm.room.topic', sender, state_key: '', content: { topic: 'text' } },
      { type: 'x.state', sender, state_key: this.#pick('', 'x', sender, CREATOR, `_${sender}`), content: {} },
      { type: 'm.room.aliases', sender, ...aliases },
      { type: 'm.room.redaction', sender, content: { redacts }, ...(this.#random.chance(0.95) ? { redacts } : {}) },
      { ...this.#thirdPartyInvite(), sender, state_key: 'token' },
    )
  }

  /** What the selection asks for, and sometimes something else. */
  #cite(event: Pdu): CitedEvent[] {
    const wanted = authEventKeys(this.#version, event).map(([type, key]) => this.#state.get(stateKeyOf(type, key)))
    const cited = wanted.filter((pdu) => pdu !== undefined).map((pdu) => ({ pdu, isRejected: false }))
    if (this.#random.chance(0.75) || event.type === 'm.room.create') return cited
    const any = this.#random.pick([...this.#state.values()])
    const other = this.#pdu({ ...this.#stateOf('m.room.power_levels', {}), room_id: '!other:here.example' }, [])
    const changed = this.#pick<CitedEvent[]>(
      [...cited, { pdu: any, isRejected: false }],
      [...cited, { pdu: this.#pdu(this.#memberOf(event.sender), [this.#reference()]), isRejected: false }],
      [...cited.slice(1), { pdu: any, isRejected: true }],
      cited.slice(1),
      cited.map(({ pdu }) => ({ pdu, isRejected: this.#random.chance(0.3) })),
      [...cited.filter(({ pdu }) => pdu.type !== 'm.room.power_levels'), { pdu: other, isRejected: false }],
    )
    // One event is cited once: the same id twice in auth_events is another matter.
    const ids = new Map(changed.map((each) => [referencedId(referenceTo(this.#version, each.pdu)), each]))
    return [...ids.values()]
  }
}
