import type { CompiledRules } from '../../core/push/compiled-rules.ts'
import { type PushOutcome, SILENCE } from '../../core/push/default-rules.ts'
import type { PushContext, PushedEvent } from '../../core/push/pushed-event.ts'
import { type DefaultsTried, outcomeForUser, type SharedOutcome } from '../../core/push/shared-outcome.ts'

interface Made {
  readonly shared: SharedOutcome
  /** Users for whom the outcome may be another; undefined if that can be anybody. */
  readonly named: ReadonlySet<unknown> | undefined
}

/**
 * What an event is to users, by their rules. It is tried once for all who have the same rules.
 *
 * @param nobody what the context of all of them has in common, as for `evaluateShared`
 */
export function outcomesOf(event: PushedEvent, nobody: PushContext) {
  const tried: DefaultsTried = new Map()
  const byRules = new Map<CompiledRules, Made>()

  function make(rules: CompiledRules): Made {
    const shared = rules.evaluateForAll(event, nobody, tried)
    const made = { shared, named: shared.named && new Set(shared.named.flat()) }
    byRules.set(rules, made)
    return made
  }

  return (
    { rules, ignored }: CompiledRules,
    userId: string,
    facts: Pick<PushContext, 'displayName' | 'follows'>,
  ): PushOutcome => {
    const { sender } = event.pdu
    if (userId === sender || ignored?.has(sender)) return SILENCE
    const { shared, named } = byRules.get(rules) ?? make(rules)
    return named && !named.has(userId) ? shared.outcome : outcomeForUser(shared, event, { ...nobody, ...facts, userId })
  }
}
