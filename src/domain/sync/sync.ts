import { ProtocolError } from '../../core/errors.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import type { SyncMetrics } from '../measures/work-metrics.ts'
import type { Restores } from '../restores.ts'
import { type Answer, answerOf, NOTHING_NEW, nothingNew } from './answer.ts'
import type { AwaitNews } from './await-news.ts'
import { planTimelines } from './first/warm.ts'
import type { SyncRequest } from './look.ts'
import type { Presence } from './presence.ts'
import type { SentAnswer, SentAnswers } from './sent-answers.ts'
import type { SyncSources } from './sources.ts'
import { decodeStreamToken, epochOf, isSamePosition, type StreamPosition } from './token.ts'
import type { UserRooms } from './user-rooms.ts'

export interface Sync {
  /**
   * Returns the JSON of what is new to a client since its token: at once if no position has moved and the client does not wait for news.
   *
   * @throws ProtocolError `M_INVALID_PARAM` for a token that is not ours; `M_LIMIT_EXCEEDED` for a client that does not read earlier
   * answers; if the session ended, the error that a request in it would get
   */
  sync(by: Requester, request: SyncRequest): SentAnswer | Promise<SentAnswer>
  /**
   * Looks once for what is new to a client since its token, for a node that holds its sync. Undefined for a client that begins, or begins anew.
   *
   * @throws as `sync`
   */
  look(by: Requester, request: SyncRequest): Promise<WholeAnswer | undefined>
  /** Sends an answer to another request that was held, which may be large, the way syncs are sent. */
  send(by: Requester, json: JsonBytes): SentAnswer
  /** Makes an answer to another request, which may be large, and sends it likewise. @throws ProtocolError `M_LIMIT_EXCEEDED` */
  answer(by: Requester, make: () => Promise<JsonBytes>): Promise<SentAnswer>
  /** Bytes of answers in memory that clients have not taken yet. */
  bytesUnderWay(): number
}

export interface WholeAnswer {
  /** Whether it holds no news for the client. */
  readonly isEmpty: boolean
  readonly json: JsonBytes
  /** Of one with news: the answer to who goes on from it, until something wakes that sync. Undefined where a look may find more. */
  readonly nothingNew?: JsonBytes | undefined
}

export interface SyncParts {
  readonly clock: Clock
  readonly awaitNews: AwaitNews
  readonly answers: SentAnswers
  readonly presence: Presence
  readonly userRooms: UserRooms
  readonly sources: SyncSources
  readonly restores: Restores
  readonly metrics: SyncMetrics
  /** The current position of every stream. */
  now(): StreamPosition
}

export function createSync(parts: SyncParts): Sync {
  const { clock, sources, answers } = parts
  const readSince = createReadSince(parts.now)

  /** A client that has read what a restore took back begins anew. It keeps the messages and keys that it got before. */
  function beginsAnew(request: SyncRequest, since: StreamPosition | undefined): SyncRequest | undefined {
    const lost = since && parts.restores.lostAfter(since, epochOf(since))
    return lost && { ...request, lostAfter: { ...since, ...lost, toDevice: 0 } }
  }

  /** The answer of a sync that ends without news. */
  function unchanged(by: Requester, token: string): JsonBytes | Promise<JsonBytes> {
    const counts = sources.keyCounts.of(by)
    return counts instanceof Promise ? counts.then((read) => nothingNew(token, read)) : nothingNew(token, counts)
  }

  function waitForNews(
    by: Requester,
    request: SyncRequest,
    since: StreamPosition,
    deadline: number,
  ): Promise<SentAnswer> {
    const { signal } = request
    const waiting = parts.awaitNews(by, { deadline, signal }, () => lookAt(by, request, since))
    return waiting.then((answer) => {
      return sendMade(by, answer ? jsonOf(answer, by, request) : unchanged(by, request.since ?? ''))
    })
  }

  function sendMade(by: Requester, json: JsonBytes | Promise<JsonBytes>): SentAnswer | Promise<SentAnswer> {
    return json instanceof Promise ? json.then((made) => answers.send(by, made)) : answers.send(by, json)
  }

  /** What is new now. If no position has moved, it reads nothing else. */
  function lookAt(by: Requester, request: SyncRequest, since: StreamPosition | undefined): Answer | Promise<Answer> {
    // Read before the position is taken. If the user leaves a room during the read, the room has events up to the position.
    const rooms = parts.userRooms.of(by.userNid)
    if (rooms instanceof Promise) {
      if (since === undefined) planTimelines(sources.db)
      return rooms.then(() => lookNow(by, request, since))
    }
    return lookNow(by, request, since)
  }

  function lookNow(by: Requester, request: SyncRequest, since: StreamPosition | undefined): Answer | Promise<Answer> {
    const now = parts.now()
    if (since && isSamePosition(since, now) && !request.fullState && sources.inboxes.isEmpty(by)) return NOTHING_NEW
    return look(by, request, since, now)
  }

  function look(
    by: Requester,
    request: SyncRequest,
    since: StreamPosition | undefined,
    now: StreamPosition,
  ): Answer | Promise<Answer> {
    const begun = performance.now()
    const made = (answer: Answer): Answer => {
      parts.metrics.made(since === undefined ? 'initial' : 'incremental', (performance.now() - begun) / 1000)
      return answer
    }
    const answer = answerOf(sources, by, request, since, now)
    return answer instanceof Promise ? answer.then(made) : made(answer)
  }

  function jsonOf({ json }: Answer, by: Requester, { since = '' }: SyncRequest): JsonBytes | Promise<JsonBytes> {
    return json ?? unchanged(by, since)
  }

  /** Messages that a device gets it has to acknowledge before there is nothing new. */
  async function nothingNewAfter(by: Requester, { isEmpty, next }: Answer): Promise<JsonBytes | undefined> {
    return isEmpty || next === undefined || !sources.inboxes.isEmpty(by) ? undefined : unchanged(by, next)
  }

  function lookOnce(
    by: Requester,
    request: SyncRequest,
    since: StreamPosition | undefined,
  ): JsonBytes | Promise<JsonBytes> {
    const answer = lookAt(by, request, since)
    return answer instanceof Promise ? answer.then((found) => jsonOf(found, by, request)) : jsonOf(answer, by, request)
  }

  function answerTo(by: Requester, request: SyncRequest): SentAnswer | Promise<SentAnswer> {
    const since = readSince(request.since)
    parts.presence.seen(by, request.presence)
    const anew = beginsAnew(request, since)
    if (anew) return sendMade(by, lookOnce(by, anew, undefined))
    if (since === undefined || request.timeoutMs === 0) return sendMade(by, lookOnce(by, request, since))
    return waitForNews(by, request, since, clock.now() + request.timeoutMs)
  }

  return {
    async look(by, request) {
      answers.mustHaveRoom(by)
      const since = readSince(request.since)
      parts.presence.seen(by, request.presence)
      if (since === undefined || beginsAnew(request, since)) return undefined
      const answer = await lookAt(by, request, since)
      const json = await jsonOf(answer, by, request)
      return { isEmpty: answer.isEmpty, json, nothingNew: await nothingNewAfter(by, answer) }
    },
    send(by, json) {
      answers.mustHaveRoom(by)
      return answers.send(by, json)
    },
    answer: answers.answer,
    bytesUnderWay: () => answers.bytes,
    sync(by, request) {
      answers.mustHaveRoom(by)
      return answerTo(by, request)
    },
  }
}

/**
 * Reads tokens. A position of an earlier run says nothing about what is in memory now. A position that is ahead of the database, because that
 * was replaced by an older copy, must not acknowledge messages that are still to come.
 */
function createReadSince(now: () => StreamPosition): (token: string | undefined) => StreamPosition | undefined {
  /** All who got a message come back with the same token. */
  let lastToken = ''
  let lastRead: StreamPosition | undefined
  return (token) => {
    if (token === undefined || token === '') return undefined
    if (token !== lastToken) lastRead = decodeStreamToken(token)
    lastToken = token
    if (!lastRead) throw new ProtocolError('M_INVALID_PARAM', '`since` is not a token that this server gave out.')
    const { run, ledger } = now()
    if (lastRead.run === run && lastRead.toDevice <= ledger) return lastRead
    const since = { ...lastRead, toDevice: Math.min(lastRead.toDevice, ledger) }
    return since.run === run ? since : { ...since, ephemeral: 0 }
  }
}
