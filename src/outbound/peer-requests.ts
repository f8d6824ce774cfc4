import { isObject, type JsonObject, type JsonValue, type ReadJson, readExactJson } from '../core/json.ts'
import { elementTexts } from '../core/json-slices.ts'
import { readExact } from '../core/large-integers.ts'
import { type EventList, readEventLists } from './event-lists.ts'
import { failureOf } from './failures.ts'
import type { Federation, FederationAnswer, FederationRequest } from './federation.ts'
import { MAX_JOIN_ANSWER_BYTES, MAX_PEER_ANSWER_BYTES } from './limits.ts'
import { refusalOf, unasked, unreachable } from './peer-errors.ts'

/** The longest time and the largest size of an answer. */
export type AnswerLimits = Pick<FederationRequest, 'timeoutMs' | 'maxBytes' | 'isPatient'>

type Wanted = Pick<FederationRequest, 'method' | 'path' | 'body'>

/** The state of a room and its auth chain. */
export interface StateAnswer {
  readonly state: EventList
  readonly authChain: EventList
}

/** Signed requests to other homeservers. Each throws the server's refusal, or why the server cannot be reached: see `peer-errors.ts`. */
export interface PeerRequests {
  ask(of: string, request: Wanted, limits?: AnswerLimits): Promise<FederationAnswer>
  get(of: string, path: string, limits?: AnswerLimits): Promise<FederationAnswer>
  put(of: string, path: string, body: JsonObject | string, limits?: AnswerLimits): Promise<FederationAnswer>
  /** Requests a whole state. `listName` is the key of its list. @returns the state, with the answer's other fields */
  askState(of: string, request: Wanted, listName: string): Promise<StateAnswer & { readonly rest: JsonObject }>
}

export const SHORT_MS = 10_000
export const LONG_MS = 60_000
/** The time for a whole state, which may be large. */
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

/** The answer as an object. */
export function objectOf(of: string, { body }: FederationAnswer): JsonObject {
  if (!isObject(body)) throw unreachable(of, 'its answer makes no sense')
  return body
}

/** The answer with exact integers of any size: `depth` in old rooms may be large. */
export function exactly(answer: FederationAnswer): FederationAnswer {
  return answer.offence === undefined ? answer : { ...answer, body: readExact(answer.bytes.toString('utf8')) }
}

/** The events in a list of an answer. */
export function listIn(of: string, answer: FederationAnswer, key: string): readonly ReadJson[] {
  const list = objectOf(of, answer)[key]
  const isPlain = answer.offence === undefined
  return eventsIn(list, isPlain ? undefined : () => elementTexts(answer.bytes.toString('utf8'), key))
}

/** @param texts the JSON of each element, if the answer contains invalid JSON: only the event that contains it must fail */
function eventsIn(
  list: JsonValue | undefined,
  texts: (() => readonly string[] | undefined) | undefined,
): readonly ReadJson[] {
  if (!Array.isArray(list)) return []
  if (texts === undefined) return list.map((value) => ({ value, offence: undefined }))
  return (texts() ?? []).map((text) => readExactJson(text))
}
