import { isErrcode, ProtocolError } from '../core/errors.ts'
import { type EventId, isServerName, type RoomId, type ServerName, type UserId } from '../core/ids.ts'
import { isObject, type JsonObject, type JsonValue, type ReadJson, readExactJson } from '../core/json.ts'
import { elementTexts } from '../core/json-slices.ts'
import { readExact } from '../core/large-integers.ts'
import { type EventList, readEventLists } from './event-lists.ts'
import { type Failure, failureOf } from './failures.ts'
import type { Federation, FederationAnswer, FederationRequest } from './federation.ts'
import {
  MAX_EVENTS_ANSWER_BYTES,
  MAX_JOIN_ANSWER_BYTES,
  MAX_NAMED_SERVERS,
  MAX_PEER_ANSWER_BYTES,
  MAX_STATE_ASKED_SINGLY,
  STATE_EVENTS_AT_ONCE,
} from './limits.ts'

/** A template for an event of a user of ours, as another server proposes it. */
export interface ProposedEvent {
  /** Undefined from servers of old, whose rooms have version 1 or 2. */
  readonly roomVersion: string | undefined
  readonly event: JsonValue
}

/** The state of a room and its auth chain. */
export interface StateAnswer {
  readonly state: EventList
  readonly authChain: EventList
}

/** What a server answers of a room that it has let us into. */
export interface SendJoinAnswer extends StateAnswer {
  /** The join as it has it; undefined where it does not say. */
  readonly event: JsonValue | undefined
  /** Most members are not among the state. */
  readonly areMembersOmitted: boolean
  /** The servers that take part, where it says so. */
  readonly servers: readonly ServerName[]
}

export type MembershipStep = 'join' | 'leave' | 'knock'

/**
 * What is asked of other homeservers (server-server API), each answer read and none of it believed.
 *
 * @throws ProtocolError each: what the other server answers, as its `errcode`; 502 `M_UNKNOWN` when it cannot be asked, or makes no sense;
 * `M_FORBIDDEN` when our operator shuts it out
 */
export interface Peers {
  make(
    of: string,
    step: MembershipStep,
    roomId: RoomId,
    userId: UserId,
    versions: readonly string[],
  ): Promise<ProposedEvent>
  /** @param json the signed event, canonical @param omitsMembers the answer may leave out members that are not needed at first */
  sendJoin(of: string, roomId: RoomId, eventId: EventId, json: string, omitsMembers?: boolean): Promise<SendJoinAnswer>
  sendLeave(of: string, roomId: RoomId, eventId: EventId, json: string): Promise<void>
  sendKnock(of: string, roomId: RoomId, eventId: EventId, json: string): Promise<readonly JsonValue[]>
  /** Gives the invitation with the signature of the invited user's server. */
  invite(of: string, invitation: Invitation): Promise<JsonValue>
  exchangeInvite(of: string, roomId: RoomId, event: JsonObject): Promise<void>
  missingEvents(of: string, roomId: RoomId, body: JsonObject): Promise<readonly ReadJson[]>
  backfill(of: string, roomId: RoomId, eventIds: readonly EventId[], limit: number): Promise<readonly ReadJson[]>
  stateIds(of: string, roomId: RoomId, eventId: EventId): Promise<{ state: EventId[]; authChain: EventId[] }>
  /** The state before an event. */
  state(of: string, roomId: RoomId, eventId: EventId): Promise<StateAnswer>
  event(of: string, eventId: EventId): Promise<readonly ReadJson[]>
  /** All by which an event is authorised, and what authorises that. */
  eventAuth(of: string, roomId: RoomId, eventId: EventId): Promise<readonly ReadJson[]>
  /** The body of the answer to a query. */
  query(of: string, path: string): Promise<JsonObject>
  post(of: string, path: string, body: JsonObject, timeoutMs?: number): Promise<JsonObject>
  /** @param body of the transaction, canonical JSON */
  sendTransaction(of: string, txnId: string, body: string): Promise<JsonObject>
}

export interface Invitation {
  readonly roomId: RoomId
  readonly eventId: EventId
  readonly roomVersion: string
  readonly event: JsonObject
  readonly inviteState: readonly JsonObject[]
  /** Whether servers that know the first version of the operation alone may be asked by that: rooms of version 1 and 2. */
  readonly isOld: boolean
}

const SHORT_MS = 10_000
const LONG_MS = 60_000
/** Somebody waits for history. */
const HISTORY_MS = 20_000
const JOIN_MS = 180_000

const path = (...parts: readonly string[]) => `federation/${parts.map(encodeURIComponent).join('/')}`

export function createPeers(federation: Federation): Peers {
  async function ask(
    of: string,
    request: Pick<FederationRequest, 'method' | 'path' | 'body'>,
    limits: Pick<FederationRequest, 'timeoutMs' | 'maxBytes' | 'isPatient'> = {
      timeoutMs: SHORT_MS,
      maxBytes: MAX_PEER_ANSWER_BYTES,
    },
  ): Promise<FederationAnswer> {
    const answer = await federation.request(of, { ...request, ...limits, signed: true })
    if (!answer.ok) throw unasked(of, answer)
    if (answer.status >= 200 && answer.status <= 299) return answer
    throw refusalOf(of, answer)
  }

  /** Asks for a whole state, whose list has a name of its own. */
  async function askLong(
    of: string,
    request: Pick<FederationRequest, 'method' | 'path' | 'body'>,
    listName: string,
  ): Promise<StateAnswer & { readonly rest: JsonObject }> {
    const limits = { timeoutMs: JOIN_MS, bodyMs: JOIN_MS, maxBytes: MAX_JOIN_ANSWER_BYTES }
    const answer = await federation.stream(of, { ...request, ...limits, signed: true })
    if (!answer.ok) throw unasked(of, answer)
    if ('bytes' in answer) throw refusalOf(of, answer)
    const lists = await readEventLists(answer.body, [listName, 'auth_chain']).catch((error: unknown) => {
      throw unreachable(of, failureOf(error).detail)
    })
    if (lists.rest === undefined) throw unreachable(of, 'its answer makes no sense')
    return { state: lists.list(listName), authChain: lists.list('auth_chain'), rest: lists.rest }
  }

  const get = (of: string, where: string, limits?: Parameters<typeof ask>[2]) =>
    ask(of, { method: 'GET', path: where }, limits)
  const put = (of: string, where: string, body: JsonObject | string, limits?: Parameters<typeof ask>[2]) =>
    ask(of, { method: 'PUT', path: where, body }, limits)

  const stateIds: Peers['stateIds'] = async (of, roomId, eventId) => {
    const where = `${path('v1', 'state_ids', roomId)}?event_id=${encodeURIComponent(eventId)}`
    const answer = objectOf(of, await get(of, where, { timeoutMs: LONG_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }))
    return { state: idsIn(answer.pdu_ids), authChain: idsIn(answer.auth_chain_ids) }
  }
  const event: Peers['event'] = async (of, eventId) => listIn(of, await get(of, path('v1', 'event', eventId)), 'pdus')

  return {
    async make(of, step, roomId, userId, versions) {
      const query =
        step === 'leave' ? '' : `?${versions.map((version) => `ver=${encodeURIComponent(version)}`).join('&')}`
      const answer = await get(of, path('v1', `make_${step}`, roomId, userId) + query)
      const { room_version: roomVersion, event } = objectOf(of, exactly(answer))
      return { roomVersion: typeof roomVersion === 'string' ? roomVersion : undefined, event: event ?? null }
    },
    async sendJoin(of, roomId, eventId, json, omitsMembers = false) {
      const send = (version: string, query: string) =>
        askLong(of, { method: 'PUT', path: path(version, 'send_join', roomId, eventId) + query, body: json }, 'state')
      const answer = await send('v2', omitsMembers ? '?omit_members=true' : '')
        .catch((error) => {
          if (error instanceof UnknownPath) return send('v1', '')
          throw error
        })
        .catch(ourFault(of))
      const { event, members_omitted: omitted, servers_in_room: servers } = answer.rest
      const names = Array.isArray(servers) ? servers.slice(0, MAX_NAMED_SERVERS).filter(isName) : []
      return { ...answer, event, areMembersOmitted: omitsMembers && omitted === true, servers: names }
    },
    async state(of, roomId, eventId) {
      const where = `${path('v1', 'state', roomId)}?event_id=${encodeURIComponent(eventId)}`
      return askLong(of, { method: 'GET', path: where }, 'pdus').catch(async (error: unknown) => {
        // It may hold the state to be too large for one answer, or have no such operation.
        const isRefused = error instanceof ProtocolError && error.status < 500 && error.errcode !== 'M_FORBIDDEN'
        if (!isRefused && !(error instanceof UnknownPath)) throw error
        const ids = await stateIds(of, roomId, eventId).catch(() => undefined)
        if (ids === undefined || ids.state.length === 0) throw error
        return eventByEvent(ids, error, async (id) => (await event(of, id))[0])
      })
    },
    async sendLeave(of, roomId, eventId, json) {
      const send = (version: string) => put(of, path(version, 'send_leave', roomId, eventId), json)
      await withOlder(
        () => send('v2'),
        () => send('v1'),
      ).catch(ourFault(of))
    },
    async sendKnock(of, roomId, eventId, json) {
      const sent = put(of, path('v1', 'send_knock', roomId, eventId), json).catch(ourFault(of))
      const answer = objectOf(of, await sent)
      return Array.isArray(answer.knock_room_state) ? answer.knock_room_state : []
    },
    async invite(of, { roomId, eventId, roomVersion, event, inviteState, isOld }) {
      const body = { room_version: roomVersion, event, invite_room_state: [...inviteState] }
      const where = (version: string) => path(version, 'invite', roomId, eventId)
      const newer = async () => objectOf(of, await put(of, where('v2'), body)).event ?? null
      const old = { ...event, unsigned: { invite_room_state: [...inviteState] } }
      const older = async () => secondOf(of, await put(of, where('v1'), old)).event ?? null
      return (isOld ? withOlder(newer, older) : newer()).catch(ourFault(of))
    },
    async exchangeInvite(of, roomId, event) {
      await put(of, path('v1', 'exchange_third_party_invite', roomId), event)
    },
    async missingEvents(of, roomId, body) {
      const where = path('v1', 'get_missing_events', roomId)
      const answer = await ask(
        of,
        { method: 'POST', path: where, body },
        { timeoutMs: SHORT_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES },
      )
      return listIn(of, answer, 'events')
    },
    async backfill(of, roomId, eventIds, limit) {
      const query = eventIds.map((id) => `v=${encodeURIComponent(id)}`).join('&')
      const where = `${path('v1', 'backfill', roomId)}?${query}&limit=${limit}`
      return listIn(of, await get(of, where, { timeoutMs: HISTORY_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }), 'pdus')
    },
    stateIds,
    event,
    async eventAuth(of, roomId, eventId) {
      const limits = { timeoutMs: SHORT_MS, maxBytes: MAX_EVENTS_ANSWER_BYTES }
      return listIn(of, await get(of, path('v1', 'event_auth', roomId, eventId), limits), 'auth_chain')
    },
    async query(of, where) {
      return objectOf(of, await get(of, `federation/v1/${where}`))
    },
    async post(of, where, body, timeoutMs = SHORT_MS) {
      const limits = { timeoutMs, maxBytes: MAX_PEER_ANSWER_BYTES }
      return objectOf(of, await ask(of, { method: 'POST', path: `federation/v1/${where}`, body }, limits))
    },
    async sendTransaction(of, txnId, body) {
      const limits = { timeoutMs: LONG_MS, maxBytes: MAX_PEER_ANSWER_BYTES, isPatient: true }
      return objectOf(of, await put(of, path('v1', 'send', txnId), body, limits))
    },
  }
}

/** A state by the ids of its events, which are asked for one by one. @throws what `event` throws, and `tooLarge` */
async function eventByEvent(
  { state, authChain }: { readonly state: readonly EventId[]; readonly authChain: readonly EventId[] },
  tooLarge: unknown,
  event: (id: EventId) => Promise<ReadJson | undefined>,
): Promise<StateAnswer> {
  const ids = [...new Set([...authChain, ...state])]
  if (ids.length > MAX_STATE_ASKED_SINGLY) throw tooLarge
  const found = new Map<EventId, ReadJson>()
  const left = ids.values()
  const until = performance.now() + JOIN_MS
  const next = async (): Promise<void> => {
    for (const id of left) {
      if (performance.now() > until) throw tooLarge
      const one = await event(id)
      if (one) found.set(id, one)
    }
  }
  await Promise.all(Array.from({ length: STATE_EVENTS_AT_ONCE }, next))
  const listOf = (wanted: readonly EventId[]): EventList => {
    const events = wanted.flatMap((id) => found.get(id) ?? [])
    return { length: events.length, at: (index) => events[index] }
  }
  return { state: listOf(state), authChain: listOf(authChain) }
}

function unasked(of: string, { kind, detail }: Failure): ProtocolError {
  return kind === 'forbidden' ? new ProtocolError('M_FORBIDDEN', detail) : unreachable(of, detail)
}

function unreachable(of: string, detail: string, extra: JsonObject = {}): ProtocolError {
  return new ProtocolError('M_UNKNOWN', `The server ${of} cannot be asked: ${detail}.`, { status: 502, extra })
}

/** What only a user's own server may say of their session or account: clients end the one, or bar the other, when they hear it. */
const OWN_SERVERS_WORDS: ReadonlySet<string> = new Set([
  ...[
    'M_UNKNOWN_TOKEN',
    'M_MISSING_TOKEN',
    'M_UNAUTHORIZED',
    'M_USER_LOCKED',
    'M_USER_SUSPENDED',
    'M_USER_DEACTIVATED',
  ],
  ...['M_CONSENT_NOT_GIVEN', 'M_RESOURCE_LIMIT_EXCEEDED', 'M_GUEST_ACCESS_FORBIDDEN'],
])

const OUR_FAULTS: ReadonlySet<string> = new Set(['M_MISSING_PARAM', 'M_INVALID_PARAM', 'M_BAD_JSON', 'M_NOT_JSON'])

/** It does not know the operation, or says nothing that tells whether it does. */
class UnknownPath extends ProtocolError {
  constructor(of: string, status: number) {
    super('M_UNKNOWN', `The server ${of} does not know what it is asked: it answered ${status}.`, { status: 502 })
  }
}

/** What another server refuses is refused here in its words, except that a failure to know us is no failure of our user's. */
function refusalOf(of: string, { status, body, retryAfterMs }: FederationAnswer): ProtocolError {
  const { errcode, error, ...rest } = isObject(body) ? body : {}
  const isMissing = status === 404 || status === 405
  if (errcode === 'M_UNRECOGNIZED' || (isMissing && errcode === undefined)) return new UnknownPath(of, status)
  const pause = retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }
  const isMeantForUs = status === 401 || !isErrcode(errcode) || OWN_SERVERS_WORDS.has(errcode)
  const isPlain429 = status === 429 && !isErrcode(errcode)
  if (isPlain429) return new ProtocolError('M_LIMIT_EXCEEDED', `${of} is asked too much.`, { extra: pause })
  if (isMeantForUs || status >= 500) return unreachable(of, `it answered ${status}`, pause)
  const text = typeof error === 'string' ? error.slice(0, 500) : 'no reason given'
  const version = typeof rest.room_version === 'string' ? { room_version: rest.room_version } : {}
  return new ProtocolError(errcode, `${of} says: ${text}`, { status, extra: { ...version, ...pause } })
}

/** That a request made no sense is no news for a user who did not make it (server-server API, `PUT send_join`, `PUT invite`). */
function ourFault(of: string): (error: unknown) => never {
  return (error) => {
    const isOurs = error instanceof ProtocolError && OUR_FAULTS.has(error.errcode)
    throw isOurs ? unreachable(of, `it makes no sense of what it is asked: ${error.message}`) : error
  }
}

/** By the second version of an operation, or by the first where a server may know only that (seed 3, "Versioning"). */
async function withOlder<Result>(newer: () => Promise<Result>, older: () => Promise<Result>): Promise<Result> {
  try {
    return await newer()
  } catch (error) {
    const isPlain = error instanceof ProtocolError && (error.status === 400 || error.status === 404)
    const mayBeOld = isPlain && error.errcode !== 'M_INCOMPATIBLE_ROOM_VERSION'
    if (!mayBeOld && !(error instanceof UnknownPath)) throw error
    return older().catch((second: unknown) => {
      throw second instanceof UnknownPath ? error : second
    })
  }
}

function objectOf(of: string, { body }: FederationAnswer): JsonObject {
  if (!isObject(body)) throw unreachable(of, 'its answer makes no sense')
  return body
}

function secondOf(of: string, { body }: FederationAnswer): JsonObject {
  const second = Array.isArray(body) ? body[1] : undefined
  if (!isObject(second)) throw unreachable(of, 'its answer makes no sense')
  return second
}

/** The answer with integers as they are, however large: of old rooms the depth may be. */
function exactly(answer: FederationAnswer): FederationAnswer {
  return answer.offence === undefined ? answer : { ...answer, body: readExact(answer.bytes.toString('utf8')) }
}

function listIn(of: string, answer: FederationAnswer, key: string): readonly ReadJson[] {
  const list = objectOf(of, answer)[key]
  const isPlain = answer.offence === undefined
  return eventsIn(list, isPlain ? undefined : () => elementTexts(answer.bytes.toString('utf8'), key))
}

/** @param texts of the elements, where something in the answer is against the rules: it is to tell against one event alone */
function eventsIn(
  list: JsonValue | undefined,
  texts: (() => readonly string[] | undefined) | undefined,
): readonly ReadJson[] {
  if (!Array.isArray(list)) return []
  if (texts === undefined) return list.map((value) => ({ value, offence: undefined }))
  return (texts() ?? []).map((text) => readExactJson(text))
}

const isName = (value: JsonValue): value is ServerName => typeof value === 'string' && isServerName(value)

function idsIn(list: JsonValue | undefined): EventId[] {
  return Array.isArray(list) ? (list.filter((id) => typeof id === 'string') as EventId[]) : []
}

/** Of a server that asks no others. */
export const NO_PEERS = new Proxy({} as Peers, {
  get: () => async (of: string) => {
    throw unreachable(of, 'this server asks no others')
  },
})
