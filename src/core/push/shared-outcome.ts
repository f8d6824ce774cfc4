import type { PersonalTest, PushTest } from './conditions.ts'
import { type CompiledRule, holdForAll, holdForUser, type PushOutcome, SILENCE } from './default-rules.ts'
import type { PushContext, PushedEvent } from './pushed-event.ts'

/** What some rules make of an event for all users of a room who have them. */
export interface SharedOutcome {
  /** The result for those for whom none of `personal` applies. */
  readonly outcome: PushOutcome
  /** Rules that come first, and of which only conditions about the user are left to test. */
  readonly personal: readonly CompiledRule[]
  /** Lists with the ids of all for whom one of them may apply, and perhaps more; undefined if that can be anybody. */
  readonly named: readonly (readonly unknown[])[] | undefined
}

/** Which conditions of server-default rules held for an event. They are the same in most rules, and so are tried once for all. */
export type DefaultsTried = Map<readonly PushTest[], boolean>

/**
 * Tries rules once for all users who have them.
 *
 * @param context of nobody: without user id and display name. `follows` is undefined if the event is in no thread.
 * @param tried of the same event and context
 */
export function evaluateShared(
  rules: readonly CompiledRule[],
  event: PushedEvent,
  context: PushContext,
  tried: DefaultsTried,
): SharedOutcome {
  event.begin()
  const personal: CompiledRule[] = []
  const named: (readonly unknown[])[] = []
  let isForAnybody = false
  for (const rule of rules) {
    if (!holds(rule, event, context, tried)) continue
    if (rule.personal.length === 0) return { outcome: rule.outcome, personal, named: isForAnybody ? undefined : named }
    const users = usersNamed(rule.personal, event, context)
    if (users?.length === 0) continue
    personal.push(rule)
    if (users === undefined) isForAnybody = true
    else named.push(users)
  }
  return { outcome: SILENCE, personal, named: isForAnybody ? undefined : named }
}

function holds({ id, tests }: CompiledRule, event: PushedEvent, context: PushContext, tried: DefaultsTried): boolean {
  // Users cannot make rules with such an id.
  if (!id.startsWith('.')) return holdForAll(tests, event, context)
  let isHeld = tried.get(tests)
  if (isHeld === undefined) {
    isHeld = holdForAll(tests, event, context)
    tried.set(tests, isHeld)
  }
  return isHeld
}

/** Users among whom are all for whom conditions can hold together. */
function usersNamed(
  tests: readonly PersonalTest[],
  event: PushedEvent,
  context: PushContext,
): readonly unknown[] | undefined {
  let found: readonly unknown[] | undefined
  for (const { names } of tests) {
    const users = names(event, context)
    if (users?.length === 0) return users
    found ??= users
  }
  return found
}

/** What a shared outcome is to one of the users: the same as `evaluateRules` gives for them. */
export function outcomeForUser(shared: SharedOutcome, event: PushedEvent, context: PushContext): PushOutcome {
  if (event.pdu.sender === context.userId) return SILENCE
  event.begin()
  for (const { personal, outcome } of shared.personal) if (holdForUser(personal, event, context)) return outcome
  return shared.outcome
}
