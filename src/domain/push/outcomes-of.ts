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

/** What an event is to all who have some rules, but for a few. */
export interface OutcomeForAll {
  readonly outcome: PushOutcome
  /** The ids of those for whom it may be another; undefined if that can be anybody. */
  readonly named: ReadonlySet<unknown> | undefined
}

/** What an event is to users, by their rules. It is tried once for all who have the same rules. */
export interface OutcomesByRules {
  of(compiled: CompiledRules, user: PushedUser): PushOutcome
  forAll(rules: CompiledRules): OutcomeForAll
}

interface Made extends OutcomeForAll {
  readonly shared: SharedOutcome
}

/**
 * @param nobody what the context of all users has in common, as for `evaluateShared`
 * @param factsOf what it has of one; asked for few
 */
export function outcomesOf(
  event: PushedEvent,
  nobody: PushContext,
  factsOf: (userNid: number) => Pick<PushContext, 'displayName' | 'follows'>,
): OutcomesByRules {
  const tried: DefaultsTried = new Map()
  const byRules = new Map<CompiledRules, Made>()
  const { sender } = event.pdu

  function forAll(rules: CompiledRules): Made {
    const known = byRules.get(rules)
    if (known) return known
    const shared = rules.evaluateForAll(event, nobody, tried)
    const made = { outcome: shared.outcome, named: shared.named && new Set(shared.named.flat()), shared }
    byRules.set(rules, made)
    return made
  }

  return {
    forAll,
    of({ rules, ignored }, { userNid, userId }) {
      if (userId === sender || ignored?.has(sender)) return SILENCE
      const { outcome, named, shared } = forAll(rules)
      if (named && (named.size === 0 || !named.has(userId))) return outcome
      return outcomeForUser(shared, event, { ...nobody, ...factsOf(userNid), userId })
    },
  }
}
