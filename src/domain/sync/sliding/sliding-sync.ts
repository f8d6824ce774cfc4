import type { ByteBudget } from '../../../core/byte-budget.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import type { Restores } from '../../restores.ts'
import type { AwaitNews } from '../await-news.ts'
import type { Presence } from '../presence.ts'
import type { SentAnswer, SentAnswers } from '../sent-answers.ts'
import type { SyncSources } from '../sources.ts'
import { isSamePosition, type StreamPosition } from '../token.ts'
import type { Connections } from './connections.ts'
import { classicRequest, type SlidingLook } from './look.ts'
import { createOneAtATime } from './one-at-a-time.ts'
import { encodePos, extensionBits, type SlidingPosition, scopeOf } from './position.ts'
import type { SlidingRequest } from './request.ts'
import { type SlidingAnswer, slidingAnswer } from './sliding-answer.ts'
import type { SlidingSources } from './sources.ts'
import { createTurns, type Turn } from './turns.ts'

export interface SlidingSync {
  /**
   * Returns the JSON of what a connection asks for and has not been sent (MSC4186). Waits for news when there is none.
   *
   * @throws ProtocolError `M_UNKNOWN_POS` for a position that the connection was not given, or that is too old: the client begins again;
   * `M_FORBIDDEN` for a user without a device; `M_LIMIT_EXCEEDED` for a client that does not read earlier answers; if the session ended, the
   * error that a request in it would get
   */
  sync(by: Requester, request: SlidingRequest): Promise<SentAnswer>
}

export interface SlidingSyncParts {
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly awaitNews: AwaitNews
  readonly answers: SentAnswers
  readonly presence: Presence
  readonly connections: Connections
  readonly sources: SyncSources
  readonly restores: Restores
  readonly own: SlidingSources
  /** The current position of every stream. */
  now(): StreamPosition
}

/** The last answer of a connection that is still true while no stream moves. */
interface LastAnswer {
  readonly pos: string
  /** What was asked. */
  readonly key: string
  readonly lists: string
}

/** What was found at a position; nothing if no stream had moved. */
interface Looked {
  readonly isEmpty: boolean
  readonly now: StreamPosition
  readonly answer: SlidingAnswer | undefined
}

const LAST_BYTES = 300

export function createSlidingSync(parts: SlidingSyncParts): SlidingSync {
  const { clock, answers, connections, sources, own, presence } = parts
  const lastAnswers = parts.budget.part<string, LastAnswer>({
    bytesOf: ({ pos, key, lists }) => LAST_BYTES + pos.length + key.length + lists.length,
  })

  const oneAtATime = createOneAtATime()
  const turnOf = createTurns(parts)

  /** Nothing is read if the position is at the newest of every stream, and the client asks for what it was just answered. */
  function lookAt(turn: Turn): Looked | Promise<Looked> {
    // Read before the position is taken. If the user leaves a room during the read, the room has events up to the position.
    const rooms = sources.userRooms.of(turn.by.userNid)
    return rooms instanceof Promise ? rooms.then(() => lookNow(turn)) : lookNow(turn)
  }

  function lookNow(turn: Turn): Looked | Promise<Looked> {
    const { by, request, from, name } = turn
    const now = parts.now()
    if (from && isSamePosition({ ...from.stream, toDevice: now.toDevice }, now) && lastOf(turn) !== undefined) {
      if (!request.extensions.toDevice || sources.inboxes.isEmpty(by)) return { isEmpty: true, now, answer: undefined }
    }
    return lookFor(turn, now, name)
  }

  function lastOf({ request, name }: Turn): LastAnswer | undefined {
    const last = lastAnswers.get(name)
    return last !== undefined && last.pos === request.pos && last.key === request.key ? last : undefined
  }

  async function lookFor(
    { by, request, from, record }: Turn,
    now: StreamPosition,
    connection: string,
  ): Promise<Looked> {
    const ignoring = sources.ignoredUsers.of(by.userNid)
    const finding = own.directRooms(by.userNid, now.ledger)
    const look: SlidingLook = {
      sources,
      own,
      by,
      request: classicRequest(request),
      since: from?.stream,
      now,
      ignored: ignoring instanceof Promise ? await ignoring : ignoring,
      timeMs: clock.now(),
      sliding: request,
      from,
      record,
      direct: finding instanceof Promise ? await finding : finding,
      connection,
    }
    const answer = await slidingAnswer(look)
    return { isEmpty: answer.isEmpty, now, answer }
  }

  /** Ends a turn: keeps what the client is sent, then says it. */
  async function finish(turn: Turn, { answer, now, isEmpty }: Looked): Promise<JsonBytes> {
    if (answer === undefined) return unchanged(turn)
    const { request, connection, record, name, tag, from } = turn
    // An answer without news is not written down: the client stays where it is, and the next look begins there.
    const stays = isEmpty && answer.rooms !== undefined && request.pos !== undefined
    const kept = answer.rooms && !stays ? await connections.advance(connection, record, answer.rooms) : record
    const scope = scopeOf(request.extensions)
    const next = { stream: now, version: kept.version, extensions: extensionBits(request.extensions), scope }
    const pos = stays || (from && isEmpty && isSameIn(next, from, now)) ? request.pos! : encodePos(next, tag)
    if (!answer.hasMore) lastAnswers.set(name, { pos, key: request.key, lists: answer.lists })
    return new JsonBytes().text(`{"pos":${JSON.stringify(pos)}`).append(answer.rest)
  }

  /** The answer of a request that ends without a look. */
  async function unchanged(turn: Turn): Promise<JsonBytes> {
    const { by, request } = turn
    const { e2ee, toDevice } = request.extensions
    const lists = lastOf(turn)?.lists ?? '{}'
    const out = new JsonBytes().text(`{"pos":${JSON.stringify(request.pos)},"lists":${lists},"rooms":{},"extensions":{`)
    if (toDevice) out.key(toDevice.name, true).text(`{"next_batch":"${toDevice.since ?? 0}","events":[]}`)
    if (e2ee) {
      const counting = sources.keyCounts.of(by)
      const counts = counting instanceof Promise ? await counting : counting
      out.key(e2ee.name, toDevice === undefined).text(`{"device_lists":{"changed":[],"left":[]}`)
      out.text(`,"device_one_time_keys_count":${counts.oneTimeJson}`)
      out.text(`,"device_unused_fallback_key_types":${counts.unusedFallbackJson}}`)
    }
    return out.text('}}')
  }

  async function answerTo(by: Requester, request: SlidingRequest): Promise<JsonBytes> {
    const turn = await turnOf(by, request)
    presence.seen(by, request.presence)
    const ended = oneAtATime.begin(turn.name, request.signal)
    try {
      // A new connection is answered at once.
      if (turn.from === undefined) return await finish(turn, await lookAt(turn))
      const patience = { deadline: clock.now() + request.timeoutMs, signal: ended }
      const isPatient = request.timeoutMs > 0
      const looked = isPatient ? await parts.awaitNews(by, patience, () => lookAt(turn)) : await lookAt(turn)
      return looked && !ended.isSuperseded ? await finish(turn, looked) : await unchanged(turn)
    } finally {
      oneAtATime.end(turn.name, ended)
    }
  }

  return {
    async sync(by, request) {
      answers.mustHaveRoom(by)
      return answers.send(by, await answerTo(by, request))
    },
  }
}

/** Whether a position is where the client is already. */
function isSameIn(next: SlidingPosition, from: SlidingPosition, now: StreamPosition): boolean {
  return (
    next.version === from.version &&
    next.extensions === from.extensions &&
    next.scope === from.scope &&
    isSamePosition({ ...from.stream, toDevice: now.toDevice }, now)
  )
}
