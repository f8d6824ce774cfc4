import { authEventKeys } from '../../../src/core/auth/select.ts'
import { type BuiltEvent, buildEvent, type EventDraft } from '../../../src/core/event/build.ts'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { EventId, RoomId, UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import { Forge, keyOf, stateKey } from '../../rooms/forge.ts'
import type { Json } from '../../support/api.ts'
import type { Authority } from '../../support/certificate.ts'
import { openStranger, type Stranger } from '../../support/stranger.ts'
import { json, type TlsHandler, type TlsRequest } from '../../support/tls-server.ts'

/** What it says instead of what an honest server would say. */
export type Lie = (honest: Json, request: TlsRequest) => Json

/** A server that others reach over TLS, that has rooms and users, and that lies where it is told to. */
export interface HostilePeer extends Stranger {
  /** Its user, who makes its rooms. */
  readonly eve: UserId
  open(version: string, name: string, joinRule?: string): Forge
  /** From here on it answers an operation (`make_join`) so. */
  lie(operation: string, lie: Lie): void
  answer(operation: string, handler: TlsHandler): void
  /** Its answers are those of an honest server again, and what it was asked is forgotten. */
  repent(): void
  /** What came with a signature of another server inside. */
  signedBy(server: string): Pdu[]
  /** Signs an event of its own making. */
  sign(version: string, draft: EventDraft): BuiltEvent
}

/** A server as a peer sees it. */
export interface Home {
  readonly name: string
  readonly url: string
}

const STEPS: Readonly<Record<string, string>> = { make_join: 'join', make_leave: 'leave', make_knock: 'knock' }

export async function openHostilePeer(authority: Authority): Promise<HostilePeer> {
  const stranger = await openStranger(authority, keyOf)
  const { name, key, front } = stranger
  const keys = front.handler
  const rooms = new Map<string, Forge>()
  const lies = new Map<string, Lie>()
  const handlers = new Map<string, TlsHandler>()
  const eve = `@eve:${name}` as UserId
  let made = 0

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
    if (operation === 'send') return { pdus: {} }
    return operation === 'send_leave' || operation === 'exchange_third_party_invite' ? {} : undefined
  }

  front.handler = (request, response) => {
    const [, , , , operation = '', ...rest] = request.url.split('?')[0]!.split('/').map(decodeURIComponent)
    const kind = request.url.startsWith('/_matrix/key/v2/server') ? 'keys' : operation
    const handler = handlers.get(kind)
    if (handler) return handler(request, response)
    if (kind === 'keys' && !lies.has(kind)) return keys(request, response)
    const answer = lies.has(kind)
      ? lies.get(kind)!(structuredClone(honest(kind, rest, request) ?? null), request)
      : honest(kind, rest, request)
    const isThere = answer !== undefined && answer !== null
    json(isThere ? answer : { errcode: 'M_NOT_FOUND', error: 'nothing' }, isThere ? 200 : 404)(request, response)
  }

  return {
    ...stranger,
    eve,
    open(version, roomName, joinRule = 'public') {
      // Keys count for a week: what is signed with them is of the present.
      const forge = Forge.open(roomVersion(version)!, roomName, eve, {}, Date.now())
      if (joinRule !== 'public') forge.set(eve, 'm.room.join_rules', { join_rule: joinRule })
      rooms.set(forge.roomId, forge)
      return forge
    },
    lie: (operation, lie) => void lies.set(operation, lie),
    answer: (operation, handler) => void handlers.set(operation, handler),
    repent() {
      lies.clear()
      handlers.clear()
      front.requests.length = 0
    },
    signedBy: (server) =>
      front.requests
        .flatMap(({ body }) => eventsIn(body))
        .filter(({ signatures }) => Object.hasOwn(signatures, server)),
    sign: (version, draft) =>
      buildEvent(roomVersion(version)!, { event_id: `$${++made}:${name}` as EventId, ...draft }, name, key),
  }
}

/** Every event in a request's body. */
function eventsIn(text: string): Pdu[] {
  const body = text === '' ? {} : JSON.parse(text)
  return [body, body.event, ...(body.pdus ?? [])].filter((one) => typeof one?.signatures === 'object')
}

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
    depth: forge.events.get(latest!)!.depth + 1,
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

/** The template that a server proposes to a user of the peer. */
export async function proposed(peer: HostilePeer, home: Home, step: Step, roomId: string, user = peer.eve) {
  const uri = `/_matrix/federation/v1/make_${step}/${encodeURIComponent(roomId)}/${encodeURIComponent(user)}?ver=1&ver=6&ver=10&ver=11&ver=12`
  return peer.ask(home, 'GET', uri)
}

/** Hands an event over; the answer, whatever it is. */
export function handOver(
  peer: HostilePeer,
  home: Home,
  step: Step,
  { pdu, eventId }: Pick<BuiltEvent, 'pdu' | 'eventId'>,
) {
  const version = step === 'knock' ? 'v1' : 'v2'
  const path = [pdu.room_id as RoomId, eventId].map(encodeURIComponent).join('/')
  return peer.ask(home, 'PUT', `/_matrix/federation/${version}/send_${step}/${path}`, { body: pdu as JsonObject })
}

/** A user of the peer joins, leaves or knocks as anybody would. */
export async function goes(
  peer: HostilePeer,
  home: Home,
  step: Step,
  roomId: string,
  user = peer.eve,
): Promise<EventId> {
  const { status, body } = await proposed(peer, home, step, roomId, user)
  if (status !== 200) throw new Error(`make_${step}: ${status} ${JSON.stringify(body)}`)
  const built = peer.sign(body.room_version, body.event)
  const answer = await handOver(peer, home, step, built)
  if (answer.status !== 200) throw new Error(`send_${step}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return built.eventId
}
