import { ProtocolError } from '../../core/errors.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import { answerOf, nothingNew } from './answer.ts'
import type { HeldSync } from './held-syncs.ts'
import type { SyncRequest } from './look.ts'
import type { Notifier } from './notifier.ts'
import type { Presence } from './presence.ts'
import { createSentAnswers, type SentAnswer } from './sent-answers.ts'
import type { SyncSources } from './sources.ts'
import { decodeStreamToken, type StreamPosition } from './token.ts'
import type { UserRooms } from './user-rooms.ts'

export interface Sync {
  /**
   * What is new to a client since its token, waiting for news when there are none. Gives the JSON of the answer.
   *
   * @throws ProtocolError `M_INVALID_PARAM` for a token that is not ours; `M_LIMIT_EXCEEDED` for who does not read earlier answers;
   *   what a request in the session would get, once that ended
   */
  sync(by: Requester, request: SyncRequest): Promise<SentAnswer>
  /** Sends what a user asked for, and may be large, as syncs are sent. */
  send(by: Requester, json: JsonBytes): SentAnswer
  /** What of answers is in memory because clients have not taken it yet. */
  bytesUnderWay(): number
}

export interface SyncParts {
  readonly clock: Clock
  readonly notifier: Notifier
  readonly presence: Presence
  readonly userRooms: UserRooms
  readonly sources: SyncSources
  /** How far everything is now. */
  now(): StreamPosition
}

export function createSync(parts: SyncParts): Sync {
  const { clock, notifier, sources } = parts
  const answers = createSentAnswers(notifier)

  /**
   * A position of an earlier run knows nothing of what lives in memory now. One from before a database was restored may be ahead
   * of it: messages that are still to come are not acknowledged by that.
   */
  function readSince(token: string | undefined): StreamPosition | undefined {
    if (token === undefined || token === '') return undefined
    const read = decodeStreamToken(token)
    if (!read) throw new ProtocolError('M_INVALID_PARAM', '`since` is not a token that this server gave out.')
    const { run, ledger } = parts.now()
    const since = { ...read, toDevice: Math.min(read.toDevice, ledger) }
    return since.run === run ? since : { ...since, ephemeral: 0 }
  }

  /** What a sync says that ends before there is anything new. */
  async function unchanged(by: Requester, token: string): Promise<JsonBytes> {
    return nothingNew(token, await sources.keyCounts.of(by))
  }

  /** Waits until there is something new, and gives it; nothing, once the sync has to end. */
  async function waitForNews(
    by: Requester,
    request: SyncRequest,
    since: StreamPosition,
    deadline: number,
    held: HeldSync,
  ): Promise<JsonBytes | undefined> {
    for (;;) {
      const rooms = await parts.userRooms.of(by.userNid)
      const roomNids = [...rooms].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
      const timeoutMs = Math.min(deadline, held.endsAt) - clock.now()
      const wait = notifier.wait({ userNid: by.userNid, roomNids }, timeoutMs, request.signal)
      held.onOver(wait.cancel)
      // Looked at once more: something may have come between the answer and the wait.
      const late = await answerOf(sources, by, request, since, parts.now())
      if (late.isEmpty) await wait.woken
      else wait.cancel()
      if (clock.now() >= held.endsAt) held.end()
      if (held.over) return undefined
      if (!late.isEmpty) return late.json
      // Read before the position is taken: a room that is left while they are read has events up to the position.
      await parts.userRooms.of(by.userNid)
      const answer = await answerOf(sources, by, request, since, parts.now())
      if (held.over) return undefined
      if (!answer.isEmpty || clock.now() >= deadline || request.signal.aborted || notifier.isDraining)
        return answer.json
    }
  }

  async function answerTo(by: Requester, request: SyncRequest): Promise<JsonBytes> {
    const since = readSince(request.since)
    parts.presence.seen(by, request.presence)
    const deadline = clock.now() + request.timeoutMs
    await parts.userRooms.of(by.userNid)
    const answer = await answerOf(sources, by, request, since, parts.now())
    if (!answer.isEmpty || since === undefined || clock.now() >= deadline) return answer.json
    if (request.signal.aborted || notifier.isDraining) return answer.json
    const held = notifier.held.hold(by)
    try {
      const news = await waitForNews(by, request, since, deadline, held)
      if (news) return news
      await held.over
      return await unchanged(by, request.since ?? '')
    } finally {
      held.release()
    }
  }

  return {
    send(by, json) {
      answers.mustHaveRoom(by)
      return answers.send(by, json)
    },
    bytesUnderWay: () => answers.bytes,
    async sync(by, request) {
      answers.mustHaveRoom(by)
      return answers.send(by, await answerTo(by, request))
    },
  }
}
