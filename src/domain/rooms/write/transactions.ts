import { hash } from 'node:crypto'
import type { ByteBudget } from '../../../core/byte-budget.ts'
import type { EventId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Transaction } from './draft.ts'

/** The transaction id of a PUT, and the path it was used on: together with whose it is, what makes "the same request". */
export interface ClientTransaction {
  readonly txnId: string
  /** The operation's path without dialect and release. */
  readonly path: string
  /** Whether it counts for one login alone (seed 2), or for all of the device's. */
  readonly ofSession?: boolean
}

/**
 * Makes a PUT with a transaction id happen once. Repeats in flight wait for the first; recent ones are remembered here;
 * older ones, and those before a crash, are refused by the row that was written with the event. Without an id nothing is a repeat.
 */
export interface Transactions {
  once(
    by: Pick<Requester, 'tokenNid' | 'earlierTokens'>,
    transaction: ClientTransaction | undefined,
    send: (transaction: Transaction | undefined) => Promise<EventId>,
  ): Promise<EventId>
}

const NONE: readonly number[] = []
/** Bytes of an answer with its key. */
const ANSWER_BYTES = 400

export function createTransactions(budget: ByteBudget): Transactions {
  const answers = budget.part<string, Promise<EventId>>({ bytesOf: () => ANSWER_BYTES })

  return {
    once({ tokenNid, earlierTokens = NONE }, transaction, send) {
      if (transaction === undefined) return send(undefined)
      const { txnId, path, ofSession } = transaction
      const txnHash = hash('sha256', path, 'base64').slice(0, 22)
      const key = `${tokenNid} ${txnHash}`
      const known = answers.get(key)
      if (known) return known
      const earlier = ofSession ? NONE : earlierTokens
      for (const other of earlier) {
        const before = answers.get(`${other} ${txnHash}`)
        if (before) return before
      }
      const answer = send({ tokenNid, earlierTokens: earlier, txnId, hash: txnHash })
      answers.set(key, answer)
      // What failed may be tried again under the same id.
      answer.catch(() => answers.delete(key))
      return answer
    },
  }
}
