import { hash } from 'node:crypto'
import type { ByteBudget } from '../../../core/byte-budget.ts'
import type { EventId } from '../../../core/ids.ts'
import { wholeText } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Transaction } from './draft.ts'

/** The transaction id of a PUT and the path it was used on. With the sender, they identify a request. */
export interface ClientTransaction {
  readonly txnId: string
  /** The operation's path without dialect and release. */
  readonly path: string
  /** Whether it counts for one login only (seed 2), or for all logins of the device. */
  readonly ofSession?: boolean
}

/**
 * Makes a request with a transaction id happen once. A repeat waits while the first is in flight; recent answers are in memory. Older
 * repeats, and those after a crash, run into the row that was written with the event. A request without an id is never a repeat.
 */
export interface Transactions {
  once(
    by: Pick<Requester, 'tokenNid' | 'earlierTokens'>,
    transaction: ClientTransaction | undefined,
    send: (transaction: Transaction | undefined) => Promise<EventId>,
  ): Promise<EventId>
}

const NONE: readonly number[] = []
/** Bytes of an answer and its key. */
const ANSWER_BYTES = 200

export function createTransactions(budget: ByteBudget): Transactions {
  const answers = budget.part<string, Promise<EventId>>({ bytesOf: () => ANSWER_BYTES })

  return {
    once({ tokenNid, earlierTokens = NONE }, transaction, send) {
      if (transaction === undefined) return send(undefined)
      const { txnId, path, ofSession } = transaction
      const txnHash = hash('sha256', path, 'base64').slice(0, 22)
      const key = wholeText(`${tokenNid} ${txnHash}`)
      const known = answers.get(key)
      if (known) return known
      const earlier = ofSession ? NONE : earlierTokens
      for (const other of earlier) {
        const before = answers.get(`${other} ${txnHash}`)
        if (before) return before
      }
      const answer = send({ tokenNid, earlierTokens: earlier, txnId, hash: txnHash })
      answers.set(key, answer)
      // A request that failed may be repeated under the same id.
      answer.catch(() => answers.delete(key))
      return answer
    },
  }
}
