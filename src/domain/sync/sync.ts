import { ProtocolError } from '../../core/errors.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import { type Answer, answerOf, nothingNew } from './answer.ts'
import type { HeldSync } from './held-syncs.ts'
import type { SyncRequest } from './look.ts'
import type { Notifier, Wait } from './notifier.ts'
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

  /** Begins to listen for what the user may see: what comes from now on wakes. */
  async function listen(by: Requester, { signal }: SyncRequest, until: number): Promise<Wait> {
    const rooms = await parts.userRooms.of(by.userNid)
    const roomNids: number[] = []
    for (const [nid, { membership }] of rooms) if (membership === 'join') roomNids.push(nid)
    return notifier.wait({ userNid: by.userNid, roomNids }, until - clock.now(), signal)
  }

  /** Listens before it looks, so that nothing comes in between unheard, and waits where there is nothing new. */
  async function waitForNews(
    by: Requester,
    request: SyncRequest,
    since: StreamPosition,
    deadline: number,
  ): Promise<JsonBytes> {
    const endsAt = notifier.held.endOf(by)
    const isDue = () => clock.now() >= deadline || request.signal.aborted || notifier.isDraining
    let held: HeldSync | undefined
    let wait: Wait | undefined
    try {
      while (!held?.over) {
        wait = await listen(by, request, Math.min(deadline, endsAt))
        let answer = await lookAt(by, request, since)
        if (answer.isEmpty && !isDue()) {
          held ??= notifier.held.hold(by)
          held.onOver(wait.cancel)
          await wait.woken
          if (clock.now() >= endsAt) held.end()
          if (held.over) break
          answer = await lookAt(by, request, since)
        }
        wait.cancel()
        if (!held?.over && (!answer.isEmpty || isDue())) return answer.json
      }
      await held.over
      return await unchanged(by, request.since ?? '')
    } finally {
      wait?.cancel()
      held?.release()
    }
  }

  async function lookAt(by: Requester, request: SyncRequest, since: StreamPosition | undefined): Promise<Answer> {
    // Read before the position is taken: a room that is left while they are read has events up to the position.
    await parts.userRooms.of(by.userNid)
    return answerOf(sources, by, request, since, parts.now())
  }

  async function answerTo(by: Requester, request: SyncRequest): Promise<JsonBytes> {
    const since = readSince(request.since)
    parts.presence.seen(by, request.presence)
    if (since === undefined || request.timeoutMs === 0) return (await lookAt(by, request, since)).json
    return waitForNews(by, request, since, clock.now() + request.timeoutMs)
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
