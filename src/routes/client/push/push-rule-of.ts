import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import { defaultRuleset, type PushRule, type PushRuleKind } from '../../../core/push-rules.ts'

/** The push rule that a path names. */
export function pushRuleOf(userId: UserId, path: { readonly kind: string; readonly ruleId: string }): PushRule {
  const ruleset = defaultRuleset(userId)
  const rules = Object.hasOwn(ruleset, path.kind) ? ruleset[path.kind as PushRuleKind] : []
  const rule = rules.find(({ rule_id }) => rule_id === path.ruleId)
  if (rule === undefined) throw new ProtocolError('M_NOT_FOUND', 'You have no such push rule.')
  return rule
}
