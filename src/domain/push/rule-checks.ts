import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { PushAction } from '../../core/push/default-rules.ts'
import { countOwn, type OwnRule, type OwnRules, type RuleName } from '../../core/push/own-rules.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import {
  MAX_PATTERN_WILDCARDS,
  MAX_PUSH_CONDITIONS,
  MAX_PUSH_RULE_BYTES,
  MAX_PUSH_RULE_ID_LENGTH,
  MAX_PUSH_RULES,
  MAX_PUSH_RULES_BYTES,
} from '../limits/push-rules.ts'

/** The content of a rule, as a client writes it. */
export interface RuleBody {
  readonly actions: readonly PushAction[]
  readonly conditions?: readonly JsonObject[]
  readonly pattern?: string
}

const refused = (text: string): ProtocolError => new ProtocolError('M_INVALID_PARAM', text)

/** The rule that a client may write under a name. @throws ProtocolError `M_INVALID_PARAM`, `M_TOO_LARGE` */
export function checkRule({ kind, id }: RuleName, { actions, conditions, pattern }: RuleBody): Omit<OwnRule, 'isOff'> {
  if (kind === 'postcontent') throw refused('There are only server-default rules of this kind. Choose another one.')
  if (id.startsWith('.'))
    throw refused('Ids that begin with `.` belong to the server-default rules. Choose another id.')
  if (/[/\\]/.test(id)) throw refused('A rule id has no `/` and no `\\`. Choose another id.')
  if (id === '' || id.length > MAX_PUSH_RULE_ID_LENGTH) {
    throw refused(`A rule id has 1 to ${MAX_PUSH_RULE_ID_LENGTH} characters.`)
  }
  const takesConditions = kind === 'override' || kind === 'underride'
  if (kind === 'content' && pattern === undefined) throw refused('A content rule needs a `pattern`.')
  if (takesConditions) for (const condition of checkConditions(conditions ?? [])) checkPattern(condition.pattern)
  if (kind === 'content') checkPattern(pattern)
  const rule = {
    id,
    actions,
    ...(takesConditions && { conditions: conditions ?? [] }),
    ...(kind === 'content' && pattern !== undefined && { pattern }),
  }
  checkSize(rule)
  return rule
}

function checkConditions(conditions: NonNullable<RuleBody['conditions']>): NonNullable<RuleBody['conditions']> {
  if (conditions.length > MAX_PUSH_CONDITIONS) throw refused(`A rule has at most ${MAX_PUSH_CONDITIONS} conditions.`)
  if (conditions.some(({ kind }) => typeof kind !== 'string')) throw refused('Each condition needs a `kind`.')
  return conditions
}

function checkPattern(pattern: unknown): void {
  if (typeof pattern !== 'string') return
  const wildcards = pattern.replace(/\*+/g, '*').match(/[*?]/g)?.length ?? 0
  if (wildcards > MAX_PATTERN_WILDCARDS) throw refused(`A pattern has at most ${MAX_PATTERN_WILDCARDS} wildcards.`)
}

/** @throws ProtocolError `M_TOO_LARGE` */
export function checkActions(actions: readonly PushAction[]): void {
  checkSize(actions)
}

function checkSize(value: unknown): void {
  if (Buffer.byteLength(JSON.stringify(value)) <= MAX_PUSH_RULE_BYTES) return
  throw new ProtocolError('M_TOO_LARGE', `A push rule may have ${MAX_PUSH_RULE_BYTES} bytes.`)
}

/** @throws ProtocolError `M_FORBIDDEN` for too many rules, `M_TOO_LARGE` */
export function checkTotal(rules: OwnRules, text: string, bounds: BoundMetrics): void {
  if (countOwn(rules) > MAX_PUSH_RULES) {
    bounds.reached('push rules')
    throw new ProtocolError('M_FORBIDDEN', `You may make ${MAX_PUSH_RULES} push rules. Delete some first.`)
  }
  if (Buffer.byteLength(text) > MAX_PUSH_RULES_BYTES) {
    bounds.reached('push rules')
    throw new ProtocolError('M_TOO_LARGE', `Your push rules may have ${MAX_PUSH_RULES_BYTES} bytes. Delete some first.`)
  }
}
