import { Readable } from 'node:stream'
import { setImmediate as othersTurn } from 'node:timers/promises'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { Requester } from '../accounts/requester.ts'
import { ANSWER_BYTES_RESERVED } from '../limits/answers.ts'
import { MAX_ANSWER_BYTES_PER_USER, MAX_ANSWER_PART_BYTES, MAX_WHOLE_ANSWER_BYTES } from '../limits.ts'
import type { HeldSyncs } from './held-syncs.ts'

/** The body of an answer to a sync, whole or made in pieces. */
export interface SentAnswer {
  readonly body: string | Buffer | Readable
  /** The sender calls this when the client has all of it, or is gone. */
  readonly closed?: () => void
}

/**
 * The answers that are being sent. A large one is made in pieces, each when the client has taken the one before, so that no answer is in
 * memory as a whole. It is broken off when the session ends.
 */
export interface SentAnswers {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED` while the user's clients leave too much of earlier answers unread */
  mustHaveRoom(by: Requester): void
  send(by: Requester, json: JsonBytes): SentAnswer
  /** Makes an answer and sends it. It counts from the beginning. @throws as `mustHaveRoom` */
  answer(by: Requester, make: () => Promise<JsonBytes>): Promise<SentAnswer>
  /** The unread bytes of all users. */
  readonly bytes: number
}

/** Smaller answers are not counted. */
const COUNTED_BYTES = 16 * 1024
/** The memory of an answer in pieces: the piece that was made and the one that waits to be written. */
const IN_PIECES_BYTES = 2 * MAX_ANSWER_PART_BYTES
const RETRY_AFTER_MS = 1_000

export function createSentAnswers({ held }: { readonly held: HeldSyncs }): SentAnswers {
  const bytesOf = new Map<number, number>()
  /** For each user, one piece is made at a time. */
  const turns = createKeyedQueue<number>()
  let total = 0

  /** @param json what nobody reads any more once the result was called */
  function count({ userNid }: Requester, bytes: number, json?: JsonBytes): () => void {
    total += bytes
    bytesOf.set(userNid, (bytesOf.get(userNid) ?? 0) + bytes)
    let isCounted = true
    return () => {
      if (!isCounted) return
      isCounted = false
      total -= bytes
      json?.release()
      const left = (bytesOf.get(userNid) ?? 0) - bytes
      if (left > 0) bytesOf.set(userNid, left)
      else bytesOf.delete(userNid)
    }
  }

  /** A whole answer is sent sooner and with less work, so it is preferred while few bytes are unread. */
  function mayBeWhole(bytes: number): boolean {
    if (bytes <= 2 * MAX_ANSWER_PART_BYTES) return true
    return bytes <= MAX_WHOLE_ANSWER_BYTES && total + bytes <= 8 * MAX_WHOLE_ANSWER_BYTES
  }

  async function* pieces({ userNid }: Requester, json: JsonBytes): AsyncGenerator<Buffer> {
    const chunks = json.chunks(MAX_ANSWER_PART_BYTES)
    for (;;) {
      const { done, value } = await turns.run(userNid, () => chunks.next())
      if (done) return
      yield value
      await othersTurn()
    }
  }

  /** Breaks a body off when the session ends. */
  function guard(by: Requester, body: Readable): void {
    if (body.destroyed) return
    const session = held.hold(by, 'sending')
    const release = () => session.release()
    body.once('close', release)
    session.onOver(() => {
      body.off('close', release)
      session.over?.then(
        () => guard(by, body),
        (error) => void body.destroy(error),
      )
    })
  }

  function mustHaveRoom({ userNid }: Requester): void {
    if ((bytesOf.get(userNid) ?? 0) < MAX_ANSWER_BYTES_PER_USER) return
    const error = 'Too much of earlier answers is still on its way to you. Read it, and ask again.'
    throw new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: RETRY_AFTER_MS } })
  }

  function send(by: Requester, json: JsonBytes): SentAnswer {
    if (json.isWhole && mayBeWhole(json.length)) {
      const body = json.whole()
      return json.length < COUNTED_BYTES ? { body } : { body, closed: count(by, json.length, json) }
    }
    const body = Readable.from(pieces(by, json))
    guard(by, body)
    // Pieces that are ready stay in memory until they are sent.
    return { body, closed: count(by, IN_PIECES_BYTES + json.length) }
  }

  return {
    mustHaveRoom,
    send,
    async answer(by, make) {
      mustHaveRoom(by)
      // One application service asks on behalf of many users.
      const release = by.appservice ? undefined : count(by, ANSWER_BYTES_RESERVED)
      try {
        return send(by, await make())
      } finally {
        release?.()
      }
    },
    get bytes() {
      return total
    },
  }
}
