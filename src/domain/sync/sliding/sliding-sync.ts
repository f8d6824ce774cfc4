import type { ByteBudget } from '../../../core/byte-budget.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import type { SyncMetrics } from '../../measures/work-metrics.ts'
import type { Restores } from '../../restores.ts'
import type { AwaitNews } from '../await-news.ts'
import type { Notifier } from '../notifier.ts'
import type { Presence } from '../presence.ts'
import type { SentAnswer, SentAnswers } from '../sent-answers.ts'
import type { SyncSources } from '../sources.ts'
import { isSamePosition, type StreamPosition } from '../token.ts'
import type { Connections } from './connections.ts'
import { createLookElsewhere, type LookElsewhere } from './look-elsewhere.ts'
import { createLooks } from './looks.ts'
import { createOneAtATime, type TurnEnd } from './one-at-a-time.ts'
import { encodePos, extensionBits, type SlidingPosition } from './position.ts'
import { readAhead } from './read-ahead.ts'
import type { SlidingRecord } from './record.ts'
import type { Asked, SlidingRequest } from './request.ts'
import { type KeepRooms, listCounts, type SlidingAnswer, slidingAnswer } from './sliding-answer.ts'
import type { SlidingSources } from './sources.ts'
import { connectionName, createTurns, type Turn } from './turns.ts'
import { createUnchanged } from './unchanged.ts'

export interface SlidingSync {
  /**
   * Returns the JSON of what a connection asks for and has not been sent (MSC4186): at once if no position has moved and the client does not
   * wait for news.
   *
   * @throws ProtocolError `M_UNKNOWN_POS` for a position that the connection was not given, or that is too old: the client begins again;
   * `M_FORBIDDEN` for a user without a device; `M_LIMIT_EXCEEDED` for a client that does not read earlier answers; if the session ended, the
   * error that a request in it would get
   */
  sync(by: Requester, request: SlidingRequest): SentAnswer | Promise<SentAnswer>
  readonly look: LookElsewhere
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
  readonly metrics: SyncMetrics
  readonly own: SlidingSources
  readonly notifier: Pick<Notifier, 'began'>
  /** The current position of every stream. */
  now(): StreamPosition
}

/** The last answer of a connection, after which there was nothing more at its position. */
interface LastAnswer {
  readonly pos: string
  readonly stream: StreamPosition
  /** What was asked. */
  readonly key: string
  /** How many rooms each list has, as JSON. */
  readonly lists: string
}

/** What was found at a position. If no stream had moved, there is no answer, but the lists of the last one. */
type Looked = { readonly isEmpty: boolean; readonly now: StreamPosition } & (
  | { readonly answer: SlidingAnswer }
  | { readonly answer: undefined; readonly lists: string }
)

const LAST_BYTES = 400

export function createSlidingSync(parts: SlidingSyncParts): SlidingSync {
  const { clock, answers, connections, sources, presence } = parts
  const lastAnswers = parts.budget.part<string, LastAnswer>({
    bytesOf: ({ pos, key, lists }) => LAST_BYTES + pos.length + key.length + lists.length,
  })
  const oneAtATime = createOneAtATime(parts.notifier.began)
  const turnOf = createTurns(parts)
  const unchanged = createUnchanged(sources)
  const lookOf = createLooks(parts)

  /** The last answer, if it is still true: the client asks the same from where it is, and no stream has moved. */
  function lastOf(
    name: string,
    by: Requester,
    { pos, asked }: SlidingRequest,
    now: StreamPosition,
  ): LastAnswer | undefined {
    const last = lastAnswers.get(name)
    if (last === undefined || last.pos !== pos || last.key !== asked.key || !isSamePosition(last.stream, now))
      return undefined
    return !asked.extensions.toDevice || sources.inboxes.isEmpty(by) ? last : undefined
  }

  function lookAt(turn: Turn, keep?: KeepRooms): Looked | Promise<Looked> {
    // Read before the position is taken. If the user leaves a room during the read, the room has events up to the position.
    const rooms = sources.userRooms.of(turn.by.userNid)
    if (!(rooms instanceof Promise)) return lookNow(turn, keep)
    return readAhead(parts, turn, rooms, parts.now().ledger).then(() => lookNow(turn, keep))
  }

  function lookNow(turn: Turn, keep?: KeepRooms): Looked | Promise<Looked> {
    const now = parts.now()
    const last = lastOf(turn.name, turn.by, turn.request, now)
    if (last) return { isEmpty: true, now, answer: undefined, lists: last.lists }
    return lookFor(turn, now, keep)
  }

  function lookFor(turn: Turn, now: StreamPosition, keep?: KeepRooms): Looked | Promise<Looked> {
    const begun = performance.now()
    const found = (answer: SlidingAnswer): Looked => {
      const kind = turn.from === undefined ? 'sliding_initial' : 'sliding'
      parts.metrics.made(kind, (performance.now() - begun) / 1000)
      return { isEmpty: answer.isEmpty, now, answer }
    }
    const looking = lookOf(turn, now)
    const answering =
      looking instanceof Promise ? looking.then((look) => slidingAnswer(look, keep)) : slidingAnswer(looking, keep)
    return answering instanceof Promise ? answering.then(found) : found(answering)
  }

  /** How many rooms each list has that a request names, if the request ends without having looked. */
  async function listsOf(turn: Turn): Promise<string> {
    const last = lastAnswers.get(turn.name)
    if (last?.key === turn.request.asked.key) return last.lists
    return turn.request.signal.aborted ? '{}' : listCounts(await lookOf(turn, parts.now()))
  }

  const unchangedAt = async (turn: Turn): Promise<JsonBytes> => unchanged(turn.by, turn.request, await listsOf(turn))

  /** Ends a turn: keeps what the client is sent, then says it. @param keeping if that has begun already */
  async function finish(turn: Turn, looked: Looked, keeping?: Promise<SlidingRecord>): Promise<JsonBytes> {
    const { by, request, connection, record, name, tag, from } = turn
    const { asked } = request
    if (looked.answer === undefined) return unchanged(by, request, looked.lists)
    const { answer, now, isEmpty } = looked
    // An answer without news is not written down: the client stays where it is, and the next look begins there.
    const stays = isEmpty && answer.rooms !== undefined && request.pos !== undefined
    const kept =
      answer.rooms && !stays ? await (keeping ?? connections.advance(connection, record, answer.rooms)) : record
    const next = positionAfter(asked, answer, now, kept.version)
    const isThere = stays || (from !== undefined && isEmpty && isSameIn(next, from))
    const pos = isThere ? request.pos! : encodePos(next, tag)
    const stream = stays ? from!.stream : now
    if (!answer.hasMore) lastAnswers.set(name, { pos, stream, key: asked.key, lists: answer.lists })
    return new JsonBytes().text(`{"pos":${JSON.stringify(pos)}`).append(answer.rest)
  }

  /** The first answer of a connection. What it says of rooms is written down while the rest of it is read. */
  async function begin(turn: Turn, end: TurnEnd): Promise<JsonBytes> {
    let keeping: Promise<SlidingRecord> | undefined
    const looked = await lookAt(turn, (rooms) => {
      // The write of the request that came after this one must come after this write; and nobody goes on from what nobody was sent.
      if (end.aborted) return
      keeping = connections.advance(turn.connection, turn.record, rooms)
      // Who waits for it hears of a failure; if the look fails, nobody does.
      keeping.catch(() => {})
    })
    if (end.aborted) throw new ProtocolError('M_UNKNOWN_POS', 'Another request began this connection anew.')
    return finish(turn, looked, keeping)
  }

  async function answerTo(by: Requester, request: SlidingRequest): Promise<JsonBytes> {
    const turn = await turnOf(by, request)
    const end = await oneAtATime.begin(turn.name, request.signal)
    try {
      // A new connection is answered at once.
      if (turn.from === undefined) return await begin(turn, end)
      const patience = { deadline: clock.now() + request.timeoutMs, signal: end }
      const looked =
        request.timeoutMs > 0 ? await parts.awaitNews(by, patience, () => lookAt(turn)) : await lookAt(turn)
      if (looked && !end.aborted) return await finish(turn, looked)
      return await unchangedAt(turn)
    } finally {
      oneAtATime.end(turn.name, end)
    }
  }

  return {
    look: createLookElsewhere({ answers, presence, oneAtATime, turnOf, lookAt, finish, unchanged: unchangedAt }),
    sync(by, request) {
      answers.mustHaveRoom(by)
      presence.seen(by, request.presence)
      const name = connectionName(by, request.asked.connId)
      const last = request.timeoutMs === 0 ? lastOf(name, by, request, parts.now()) : undefined
      if (last) oneAtATime.supersede(name)
      const made = last ? unchanged(by, request, last.lists) : answerTo(by, request)
      return made instanceof Promise ? made.then((json) => answers.send(by, json)) : answers.send(by, made)
    },
  }
}

function positionAfter(asked: Asked, answer: SlidingAnswer, stream: StreamPosition, version: number): SlidingPosition {
  const { extensions, scope } = asked
  return { stream, version, extensions: extensionBits(extensions), scope, profiles: answer.profilesUpTo }
}

/** Whether a position is where the client is already. */
function isSameIn(next: SlidingPosition, from: SlidingPosition): boolean {
  return (
    next.version === from.version &&
    next.extensions === from.extensions &&
    next.scope === from.scope &&
    next.profiles === from.profiles &&
    isSamePosition(from.stream, next.stream)
  )
}
