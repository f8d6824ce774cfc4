import type { Errcode } from '../errors.ts'
import type { UserId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import {
  COMPILED_DEFAULTS,
  DEFAULT_RULES,
  type DefaultChange,
  defaultRules,
  PUSH_RULE_KINDS,
  type PushAction,
  type PushRule,
  type PushRuleKind,
  type PushRuleset,
} from './default-rules.ts'

/** A rule that a user made. */
export interface OwnRule {
  readonly id: string
  readonly actions: readonly PushAction[]
  readonly conditions?: readonly JsonObject[]
  readonly pattern?: string
  readonly isOff?: true
}

/** What distinguishes a user's push rules from the server-default ones: this is what is stored. */
export interface OwnRules {
  /** In the order they are tried. */
  readonly own: { readonly [Kind in PushRuleKind]?: readonly OwnRule[] }
  /** By rule id. An id that is no rule any more means nothing. */
  readonly changes: Readonly<Record<string, DefaultChange>>
}

export const NO_OWN_RULES: OwnRules = { own: {}, changes: {} }

/** Names a rule. */
export interface RuleName {
  readonly kind: PushRuleKind
  readonly id: string
}

/** Why rules cannot be changed like this. */
export class RuleRefusal {
  readonly errcode: Errcode
  readonly reason: string

  constructor(errcode: Errcode, reason: string) {
    this.errcode = errcode
    this.reason = reason
  }
}

/** Where to put a rule: right before or right after another rule of the user. `before` wins. */
export interface RulePlace {
  readonly before?: string
  readonly after?: string
}

/** The rules of a user, as `GET pushrules/` and `m.push_rules` show them. */
export function rulesetOf({ own, changes }: OwnRules, userId: UserId): PushRuleset {
  const rulesOf = (kind: PushRuleKind): PushRule[] => {
    const first = kind === 'override' ? 1 : 0
    const defaults = defaultRules(kind, userId, changes)
    // `.m.rule.master` alone comes before the rules of users.
    return [...defaults.slice(0, first), ...(own[kind] ?? []).map(shown), ...defaults.slice(first)]
  }
  return {
    override: rulesOf('override'),
    content: rulesOf('content'),
    postcontent: rulesOf('postcontent'),
    room: rulesOf('room'),
    sender: rulesOf('sender'),
    underride: rulesOf('underride'),
  }
}

function shown({ id, actions, conditions, pattern, isOff }: OwnRule): PushRule {
  return {
    rule_id: id,
    default: false,
    enabled: !isOff,
    ...(conditions && { conditions: [...conditions] }),
    ...(pattern === undefined ? {} : { pattern }),
    actions: [...actions],
  }
}

const isDefault = ({ kind, id }: RuleName): boolean => COMPILED_DEFAULTS[kind].some((rule) => rule.id === id)

const unknown = () => new RuleRefusal('M_NOT_FOUND', 'You have no such push rule. GET pushrules/ lists yours.')

/** The rules with one more rule, or with another form of one that exists: that one stays where it is, unless a place is given. */
export function putRule(
  rules: OwnRules,
  kind: PushRuleKind,
  rule: Omit<OwnRule, 'isOff'>,
  place: RulePlace,
): OwnRules | RuleRefusal {
  const list = rules.own[kind] ?? []
  const at = list.findIndex(({ id }) => id === rule.id)
  const known = list[at]
  const next: OwnRule = known?.isOff ? { ...rule, isOff: true } : rule
  const anchor = place.before ?? place.after
  if (anchor === undefined) {
    const changed = known ? list.with(at, next) : [next, ...list]
    return withOwn(rules, kind, changed)
  }
  const others = list.filter(({ id }) => id !== rule.id)
  // A rule that is put before or after itself stays.
  if (known && anchor === rule.id) return withOwn(rules, kind, list.with(at, next))
  const anchorAt = others.findIndex(({ id }) => id === anchor)
  if (anchorAt === -1) {
    const name = place.before === undefined ? 'after' : 'before'
    return new RuleRefusal(
      'M_UNKNOWN',
      `\`${name}\` names no ${kind} rule of yours. It cannot name a server-default rule.`,
    )
  }
  return withOwn(rules, kind, others.toSpliced(place.before === undefined ? anchorAt + 1 : anchorAt, 0, next))
}

export function deleteRule(rules: OwnRules, name: RuleName): OwnRules | RuleRefusal {
  const list = rules.own[name.kind] ?? []
  const rest = list.filter(({ id }) => id !== name.id)
  if (rest.length < list.length) return withOwn(rules, name.kind, rest)
  if (!isDefault(name)) return unknown()
  return new RuleRefusal('M_INVALID_PARAM', 'A server-default rule cannot be deleted. Disable it instead.')
}

export function setRuleEnabled(rules: OwnRules, name: RuleName, enabled: boolean): OwnRules | RuleRefusal {
  const on = ({ isOff, ...rule }: OwnRule): OwnRule => rule
  return changed(rules, name, { enabled }, (rule) => (enabled ? on(rule) : { ...rule, isOff: true }))
}

export function setRuleActions(
  rules: OwnRules,
  name: RuleName,
  actions: readonly PushAction[],
): OwnRules | RuleRefusal {
  return changed(rules, name, { actions }, (rule) => ({ ...rule, actions }))
}

/** The rules of a user who follows a thread: those about threads begin to apply, unless the user has said whether they do. */
export function withThreadRules(rules: OwnRules): OwnRules {
  const ids = DEFAULT_RULES.postcontent.map(({ id }) => id)
  if (ids.some((id) => rules.changes[id]?.enabled !== undefined)) return rules
  const begun = Object.fromEntries(ids.map((id) => [id, { ...rules.changes[id], enabled: true }]))
  return { ...rules, changes: { ...rules.changes, ...begun } }
}

function changed(
  rules: OwnRules,
  name: RuleName,
  change: DefaultChange,
  apply: (rule: OwnRule) => OwnRule,
): OwnRules | RuleRefusal {
  if (isDefault(name)) {
    const before = Object.hasOwn(rules.changes, name.id) ? rules.changes[name.id] : {}
    return { ...rules, changes: { ...rules.changes, [name.id]: { ...before, ...change } } }
  }
  const list = rules.own[name.kind] ?? []
  const at = list.findIndex(({ id }) => id === name.id)
  return at === -1 ? unknown() : withOwn(rules, name.kind, list.with(at, apply(list[at]!)))
}

function withOwn(rules: OwnRules, kind: PushRuleKind, list: readonly OwnRule[]): OwnRules {
  return { ...rules, own: { ...rules.own, [kind]: list } }
}

/** How many rules the user made. */
export function countOwn({ own }: OwnRules): number {
  return PUSH_RULE_KINDS.reduce((count, kind) => count + (own[kind]?.length ?? 0), 0)
}
