import { authEventKeys } from '../../../src/core/auth/select.ts'
import { type BuiltEvent, buildEvent, type EventDraft } from '../../../src/core/event/build.ts'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import type { SigningKey } from '../../../src/core/signing/key.ts'
import { Forge, keyOf, stateKey } from '../../rooms/forge.ts'
import type { Api, Json } from '../../support/api.ts'
import type { Authority } from '../../support/certificate.ts'
import { type Ask, askingAs, openStranger, type Stranger } from '../../support/stranger.ts'
import { json, type TlsHandler, type TlsRequest } from '../../support/tls-server.ts'
import { LIES, type Lie } from './lies.ts'
import { MANNERS } from './manners.ts'

/** A server as it asks others: a name, a key, a user. */
export interface Caller {
  readonly name: ServerName
  readonly key: SigningKey
  /** Its user, who makes its rooms. */
  readonly eve: UserId
  readonly ask: Ask
  /** Signs an event of its own making. */
  sign(version: string, draft: EventDraft): BuiltEvent
}

/** Everybody who knows a peer's name can speak for it. */
export function callerOf(name: ServerName): Caller {
  const key = keyOf(name)
  let made = 0
  return {
    ...{ name, key, eve: `@eve:${name}` as UserId, ask: askingAs(name, key) },
    sign: (version, draft) =>
      buildEvent(roomVersion(version)!, { event_id: `$${++made}:${name}` as EventId, ...draft }, name, key),
  }
}

/** A room of a peer's, the same wherever it is made. Keys count for a week: what is signed with them is of the present. */
export function roomOf({ eve }: Pick<Caller, 'eve'>, { version, name, joinRule = 'public', since }: PeerRoom): Forge {
  const forge = Forge.open(roomVersion(version)!, name, eve, {}, since)
  if (joinRule !== 'public') forge.set(eve, 'm.room.join_rules', { join_rule: joinRule })
  return forge
}

export interface PeerRoom {
  readonly version: string
  readonly name: string
  readonly joinRule?: string
  readonly since: number
}

/** A server that others reach over TLS, that has rooms and users, and that lies where it is told to. */
export interface Peer extends Caller, Pick<Stranger, 'front' | 'close'> {
  open(room: PeerRoom): Forge
  /** From here on it answers an operation (`make_join`), or whatever it is asked (`*`), so. */
  lie(operation: string, lie: string, detail?: Json): void
  answer(operation: string, handler: TlsHandler): void
  /** Its answers are those of an honest server again, and what it was asked is forgotten. */
  repent(): void
}

/** A server as a peer sees it. */
export interface Home {
  readonly name: string
  readonly url: string
}

const STEPS: Readonly<Record<string, string>> = { make_join: 'join', make_leave: 'leave', make_knock: 'knock' }
const BY_VERSION: Readonly<Record<string, string>> = { '/v1/invite': 'invite_v1' }

export async function openPeer(authority: Pick<Authority, 'issue'>): Promise<Peer> {
  const { front, ...stranger } = await openStranger(authority, keyOf)
  const caller = callerOf(stranger.name)
  const { name, key } = caller
  const keys = front.handler
  const rooms = new Map<string, Forge>()
  const handlers = new Map<string, TlsHandler>()

  /** As a server answers that has nothing to hide. */
  function honest(operation: string, [roomId = '', who = '']: readonly string[], request: TlsRequest): Json {
    const forge = rooms.get(roomId)
    const body = request.body === '' ? {} : JSON.parse(request.body)
    if (operation in STEPS) return forge && templateOf(forge, who as UserId, STEPS[operation]!)
    if (operation === 'send_join') return forge && { ...joinAnswerOf(forge), origin: name, event: body }
    if (operation === 'send_knock') return { knock_room_state: [] }
    if (operation === 'invite') {
      return { event: signEvent(roomVersion(body.room_version)!, body.event as Pdu, name, key) }
    }
    if (operation === 'invite_v1') return [200, { event: signEvent(roomVersion('1')!, body as Pdu, name, key) }]
    if (operation === 'keys') {
      const verify_keys = { [key.keyId]: { key: key.publicKey } }
      return { server_name: name, verify_keys, old_verify_keys: {}, valid_until_ts: Date.now() + 3_600_000 }
    }
    if (operation === 'send') return { pdus: {} }
    return operation === 'send_leave' || operation === 'exchange_third_party_invite' ? {} : undefined
  }

  const lying =
    (operation: string, lie: Lie, detail: Json): TlsHandler =>
    (request, response) => {
      const home = /origin="?([^",]+)/.exec(request.headers.authorization ?? '')?.[1] ?? ''
      const truth = structuredClone(honest(operation, partsOf(request).rest, request) ?? null)
      answerWith(lie(truth, { peer: caller, home, request, detail }))(request, response)
    }

  front.handler = (request, response) => {
    const { operation, rest } = partsOf(request)
    const handler = handlers.get(operation) ?? handlers.get('*')
    if (handler) return handler(request, response)
    if (operation === 'keys') return keys(request, response)
    answerWith(honest(operation, rest, request))(request, response)
  }

  return {
    ...caller,
    front,
    close: stranger.close,
    open(room) {
      const forge = roomOf(caller, room)
      rooms.set(forge.roomId, forge)
      return forge
    },
    lie(operation, lie, detail = null) {
      const manner = MANNERS[lie]
      const chosen = (LIES as Readonly<Record<string, Readonly<Record<string, Lie>>>>)[operation]?.[lie]
      if (!manner && !chosen) throw new Error(`there is no lie "${lie}" to ${operation}`)
      handlers.set(operation, chosen ? lying(operation, chosen, detail) : manner!(detail))
    },
    answer: (operation, handler) => void handlers.set(operation, handler),
    repent() {
      handlers.clear()
      front.requests.length = 0
    },
  }
}

/** What is asked, and the rest of its path. */
function partsOf({ url }: TlsRequest): { operation: string; rest: readonly string[] } {
  if (url.startsWith('/_matrix/key/v2/server')) return { operation: 'keys', rest: [] }
  const [, , , version, named = '', ...rest] = url.split('?')[0]!.split('/').map(decodeURIComponent)
  return { operation: BY_VERSION[`/${version}/${named}`] ?? named, rest }
}

const answerWith = (answer: Json): TlsHandler =>
  answer === undefined || answer === null ? json({ errcode: 'M_NOT_FOUND', error: 'nothing' }, 404) : json(answer)

function authOf(forge: Forge, version: RoomVersion, user: UserId, content: JsonObject): EventId[] {
  const before = forge.states.get(forge.latest!)!
  return authEventKeys(version, { type: 'm.room.member', sender: user, state_key: user, content }).flatMap(
    ([type, of]) => before.get(stateKey(type, of)) ?? [],
  )
}

function templateOf(forge: Forge, user: UserId, membership: string): Json {
  const { version, roomId, latest } = forge
  const content = { membership }
  const event = {
    ...{ type: 'm.room.member', room_id: roomId, sender: user, state_key: user, content, origin_server_ts: 1 },
    depth: Number(forge.events.get(latest!)!.depth) + 1,
    prev_events: [forge.referenceTo(latest!)],
    auth_events: authOf(forge, version, user, content).map((id) => forge.referenceTo(id)),
  }
  return { room_version: version.id, event }
}

function joinAnswerOf(forge: Forge): Json {
  const state = [...forge.states.get(forge.latest!)!.values()]
  const parsed = (ids: readonly EventId[]) => ids.map((id) => JSON.parse(forge.texts.get(id)!))
  return { state: parsed(state), auth_chain: parsed(forge.authChain(state)) }
}

type Step = 'join' | 'leave' | 'knock'

/** What users of a server ask of a peer, so that it is asked. */
export function questionsTo({ name, eve }: Pick<Caller, 'name' | 'eve'>, api: Api, token: string) {
  const get = (path: string) => api.request('GET', path, { token })
  const lair = `/join/${encodeURIComponent(`!lair:${name}`)}?via=${name}`
  return [
    api.request('POST', lair, { token, body: {} }),
    get(`/profile/${encodeURIComponent(eve)}`),
    get(`/directory/room/${encodeURIComponent(`#lair:${name}`)}`),
    get(`/publicRooms?server=${name}`),
  ]
}

/** The template that a server proposes to a user of the peer. */
export async function proposed(peer: Caller, home: Home, step: Step, roomId: string, user = peer.eve) {
  const uri = `/_matrix/federation/v1/make_${step}/${encodeURIComponent(roomId)}/${encodeURIComponent(user)}?ver=1&ver=6&ver=10&ver=11&ver=12`
  return peer.ask(home, 'GET', uri)
}

/** Hands an event over; the answer, whatever it is. */
export function handOver(peer: Caller, home: Home, step: Step, { pdu, eventId }: Pick<BuiltEvent, 'pdu' | 'eventId'>) {
  const version = step === 'knock' ? 'v1' : 'v2'
  const path = [pdu.room_id as RoomId, eventId].map(encodeURIComponent).join('/')
  return peer.ask(home, 'PUT', `/_matrix/federation/${version}/send_${step}/${path}`, { body: pdu as JsonObject })
}

/** A user of the peer joins, leaves or knocks as anybody would. */
export async function goes(peer: Caller, home: Home, step: Step, roomId: string, user = peer.eve): Promise<EventId> {
  const { status, body } = await proposed(peer, home, step, roomId, user)
  if (status !== 200) throw new Error(`make_${step}: ${status} ${JSON.stringify(body)}`)
  const built = peer.sign(body.room_version, body.event)
  const answer = await handOver(peer, home, step, built)
  if (answer.status !== 200) throw new Error(`send_${step}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return built.eventId
}
