import { isObject, type JsonObject, type JsonValue, type ReadJson, readExactJson } from '../core/json.ts'
import { elementTexts } from '../core/json-slices.ts'
import { readExact } from '../core/large-integers.ts'
import { type EventList, readEventLists } from './event-lists.ts'
import { failureOf } from './failures.ts'
import type { Federation, FederationAnswer, FederationRequest } from './federation.ts'
import { MAX_JOIN_ANSWER_BYTES, MAX_PEER_ANSWER_BYTES } from './limits.ts'
import { refusalOf, unasked, unreachable } from './peer-errors.ts'

/** How long an answer may take, and how large it may be. */
export type AnswerLimits = Pick<FederationRequest, 'timeoutMs' | 'maxBytes' | 'isPatient'>

type Wanted = Pick<FederationRequest, 'method' | 'path' | 'body'>

/** The state of a room and its auth chain. */
export interface StateAnswer {
  readonly state: EventList
  readonly authChain: EventList
}

/** Signed requests to other homeservers. Each throws what a server refuses, or why it cannot be asked: see `peer-errors.ts`. */
export interface PeerRequests {
  ask(of: string, request: Wanted, limits?: AnswerLimits): Promise<FederationAnswer>
  get(of: string, path: string, limits?: AnswerLimits): Promise<FederationAnswer>
  put(of: string, path: string, body: JsonObject | string, limits?: AnswerLimits): Promise<FederationAnswer>
  /** Asks for a whole state, whose list has a name of its own. @returns it, with what else the answer says */
  askState(of: string, request: Wanted, listName: string): Promise<StateAnswer & { readonly rest: JsonObject }>
}

export const SHORT_MS = 10_000
export const LONG_MS = 60_000
/** For a whole state, which may be large. */
export const STATE_MS = 180_000

export const path = (...parts: readonly string[]) => `federation/${parts.map(encodeURIComponent).join('/')}`

export function createPeerRequests(federation: Federation): PeerRequests {
  async function ask(
    of: string,
    request: Wanted,
    limits: AnswerLimits = {
      timeoutMs: SHORT_MS,
      maxBytes: MAX_PEER_ANSWER_BYTES,
    },
  ): Promise<FederationAnswer> {
    const answer = await federation.request(of, { ...request, ...limits, signed: true })
    if (!answer.ok) throw unasked(of, answer)
    if (answer.status >= 200 && answer.status <= 299) return answer
    throw refusalOf(of, answer)
  }

  return {
    ask,
    get: (of, where, limits) => ask(of, { method: 'GET', path: where }, limits),
    put: (of, where, body, limits) => ask(of, { method: 'PUT', path: where, body }, limits),
    async askState(of, request, listName) {
      const limits = { timeoutMs: STATE_MS, bodyMs: STATE_MS, maxBytes: MAX_JOIN_ANSWER_BYTES }
      const answer = await federation.stream(of, { ...request, ...limits, signed: true })
      if (!answer.ok) throw unasked(of, answer)
      if ('bytes' in answer) throw refusalOf(of, answer)
      const lists = await readEventLists(answer.body, [listName, 'auth_chain']).catch((error: unknown) => {
        throw unreachable(of, failureOf(error).detail)
      })
      if (lists.rest === undefined) throw unreachable(of, 'its answer makes no sense')
      return { state: lists.list(listName), authChain: lists.list('auth_chain'), rest: lists.rest }
    },
  }
}

/** The object that an answer is. */
export function objectOf(of: string, { body }: FederationAnswer): JsonObject {
  if (!isObject(body)) throw unreachable(of, 'its answer makes no sense')
  return body
}

/** The answer with integers as they are, however large: of old rooms the depth may be. */
export function exactly(answer: FederationAnswer): FederationAnswer {
  return answer.offence === undefined ? answer : { ...answer, body: readExact(answer.bytes.toString('utf8')) }
}

/** The events in a list of an answer. */
export function listIn(of: string, answer: FederationAnswer, key: string): readonly ReadJson[] {
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
