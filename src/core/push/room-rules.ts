import type { RoomId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import type { PushRuleKind } from './default-rules.ts'
import type { OwnRule, OwnRules } from './own-rules.ts'

/** The kinds of rules whose conditions may name a room. */
const CONDITIONAL = ['override', 'underride'] as const

/**
 * A user's rules with a copy, for the room `to`, of each rule about the room `from`: its rule of the kind `room`, and rules with a condition
 * that names it. A copy comes right after its original. A rule that the user has under the copy's id stays as it is.
 */
export function withRoomRulesCopied(rules: OwnRules, from: RoomId, to: RoomId): OwnRules {
  const own: { [Kind in PushRuleKind]?: readonly OwnRule[] } = { ...rules.own }
  const copyIn = (kind: PushRuleKind, copyOf: (rule: OwnRule) => OwnRule | undefined) => {
    const list = own[kind] ?? []
    const taken = new Set(list.map(({ id }) => id))
    const next = list.flatMap((rule) => {
      const copy = copyOf(rule)
      if (copy === undefined || taken.has(copy.id)) return [rule]
      taken.add(copy.id)
      return [rule, copy]
    })
    if (next.length > list.length) own[kind] = next
  }
  copyIn('room', (rule) => (rule.id === from ? { ...rule, id: to } : undefined))
  for (const kind of CONDITIONAL) {
    copyIn(kind, ({ conditions = [], ...rule }) => {
      if (!conditions.some((condition) => names(condition, from))) return undefined
      const id = rule.id.includes(from) ? rule.id.replaceAll(from, to) : `${rule.id} ${to}`
      return { ...rule, id, conditions: conditions.map((one) => (names(one, from) ? { ...one, pattern: to } : one)) }
    })
  }
  return { ...rules, own }
}

const names = ({ kind, key, pattern }: JsonObject, roomId: RoomId): boolean =>
  kind === 'event_match' && key === 'room_id' && pattern === roomId
