import type { UserId } from '../../core/ids.ts'
import type { CompiledRules } from '../../core/push/compiled-rules.ts'
import { type PushOutcome, SILENCE } from '../../core/push/default-rules.ts'
import type { PushContext, PushedEvent } from '../../core/push/pushed-event.ts'
import { type DefaultsTried, outcomeForUser, type SharedOutcome } from '../../core/push/shared-outcome.ts'

/** A local user whose rules are asked for. */
export interface PushedUser {
  readonly userNid: number
  readonly userId: UserId
}

interface Made {
  readonly shared: SharedOutcome
  /** Users for whom the outcome may be another; undefined if that can be anybody. */
  readonly named: ReadonlySet<unknown> | undefined
}

/**
 * What an event is to users, by their rules. It is tried once for all who have the same rules.
 *
 * @param nobody what the context of all of them has in common, as for `evaluateShared`
 * @param factsOf what it has of one; asked for few
 */
export function outcomesOf(
  event: PushedEvent,
  nobody: PushContext,
  factsOf: (userNid: number) => Pick<PushContext, 'displayName' | 'follows'>,
): (compiled: CompiledRules, user: PushedUser) => PushOutcome {
  const tried: DefaultsTried = new Map()
  const byRules = new Map<CompiledRules, Made>()
  const { sender } = event.pdu

  function make(rules: CompiledRules): Made {
    const shared = rules.evaluateForAll(event, nobody, tried)
    const made = { shared, named: shared.named && new Set(shared.named.flat()) }
    byRules.set(rules, made)
    return made
  }

  return ({ rules, ignored }, { userNid, userId }) => {
    if (userId === sender || ignored?.has(sender)) return SILENCE
    const { shared, named } = byRules.get(rules) ?? make(rules)
    if (named && (named.size === 0 || !named.has(userId))) return shared.outcome
    return outcomeForUser(shared, event, { ...nobody, ...factsOf(userNid), userId })
  }
}
