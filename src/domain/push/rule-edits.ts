import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { RoomId } from '../../core/ids.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { compileRuleset } from '../../core/push/compiled-rules.ts'
import { isPushRuleKind, type PushAction, type PushRule } from '../../core/push/default-rules.ts'
import {
  deleteRule,
  type OwnRules,
  putRule,
  type RuleName,
  type RulePlace,
  RuleRefusal,
  setRuleActions,
  setRuleEnabled,
  withThreadRules,
} from '../../core/push/own-rules.ts'
import { withRoomRulesCopied } from '../../core/push/room-rules.ts'
import { setPushRules } from '../../store/accounts/push-rules.ts'
import type { Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { countFromHere, getJoinedRooms } from '../../store/events/unread.ts'
import type { Waker } from '../accounts/account-data.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import { checkActions, checkRule, checkTotal, type RuleBody } from './rule-checks.ts'
import type { PushedUser, PushRules } from './rules.ts'

/** A rule as a path names it. */
export interface NamedRule {
  readonly kind: string
  readonly ruleId: string
}

/** What users change about their push rules. All their devices get the change as `m.push_rules` account data. */
export interface PushRuleEdits {
  /** One rule as its user reads it. @throws ProtocolError `M_NOT_FOUND` */
  get(user: PushedUser, name: NamedRule): Promise<PushRule>
  /**
   * Makes a rule, or writes another form of one that exists.
   *
   * @throws ProtocolError `M_INVALID_PARAM` for a rule that cannot be, `M_UNKNOWN` (400) for a place that is none, `M_TOO_LARGE`, and
   * `M_FORBIDDEN` for too many rules
   */
  put(user: PushedUser, name: NamedRule, body: RuleBody, place: RulePlace): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND`, `M_INVALID_PARAM` for a server-default rule */
  delete(user: PushedUser, name: NamedRule): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  setEnabled(user: PushedUser, name: NamedRule, enabled: boolean): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND`, `M_TOO_LARGE` */
  setActions(user: PushedUser, name: NamedRule, actions: readonly PushAction[]): Promise<void>
  /** The user follows a thread: from the first one on, threads notify as far as the user follows them. */
  followThreads(user: PushedUser): Promise<void>
  /** Copies the rules about a room for the room that replaces it. @throws ProtocolError `M_TOO_LARGE`, `M_FORBIDDEN` for too many rules */
  copyRoom(user: PushedUser, from: RoomId, to: RoomId): Promise<void>
}

function nameOf({ kind, ruleId }: NamedRule): RuleName {
  if (isPushRuleKind(kind)) return { kind, id: ruleId }
  throw new ProtocolError(
    'M_NOT_FOUND',
    'There are no such rules. The kinds are override, content, postcontent, room, sender and underride.',
  )
}

/** What only reads one rule. */
export function createPushRuleReader(pushRules: Pick<PushRules, 'ruleset'>): Pick<PushRuleEdits, 'get'> {
  return {
    async get(user, path) {
      const { kind, id } = nameOf(path)
      const rule = (await pushRules.ruleset(user))[kind].find(({ rule_id }) => rule_id === id)
      if (!rule) throw new ProtocolError('M_NOT_FOUND', 'You have no such push rule. GET pushrules/ lists yours.')
      return rule
    },
  }
}

export function createPushRuleEdits(parts: {
  readonly ledger: Ledger
  readonly notifier: Waker
  readonly pushRules: PushRules
  readonly bounds: BoundMetrics
  readonly log: Pick<Logger, 'error'>
}): PushRuleEdits {
  const { ledger, notifier, pushRules, bounds, log } = parts
  // Each change is made to what the one before it left.
  const queue = createKeyedQueue<number>()
  ledger.onMissed(() => void pushRules.readAgain().catch((err) => log.error({ err }, 'push rules were not read again')))

  function change({ userNid }: PushedUser, edit: (rules: OwnRules) => OwnRules | RuleRefusal): Promise<void> {
    return queue.run(userNid, async () => {
      const before = await pushRules.stored(userNid)
      const rules = edit(before)
      if (rules instanceof RuleRefusal) throw errorOf(rules)
      const text = JSON.stringify(rules)
      if (text === JSON.stringify(before)) return
      checkTotal(rules, text, bounds)
      await ledger.append(
        async (tx, position) => {
          const writing = setPushRules(tx, { userNid, rules: text, position })
          await countFromNow(tx, userNid, before, rules)
          await writing
        },
        (_, position) => {
          pushRules.changed(userNid, rules, position)
          notifier.wakeUsers([userNid], position)
        },
      )
    })
  }

  return {
    get: createPushRuleReader(pushRules).get,
    async put(user, path, body, place) {
      const name = nameOf(path)
      const rule = checkRule(name, body)
      await change(user, (rules) => putRule(rules, name.kind, rule, place))
    },
    async delete(user, path) {
      const name = nameOf(path)
      await change(user, (rules) => deleteRule(rules, name))
    },
    async setEnabled(user, path, enabled) {
      const name = nameOf(path)
      await change(user, (rules) => setRuleEnabled(rules, name, enabled))
    },
    async setActions(user, path, actions) {
      const name = nameOf(path)
      checkActions(actions)
      await change(user, (rules) => setRuleActions(rules, name, actions))
    },
    followThreads: (user) => change(user, withThreadRules),
    async copyRoom(user, from, to) {
      if (pushRules.hasOwn(user.userNid)) await change(user, (rules) => withRoomRulesCopied(rules, from, to))
    },
  }
}

/**
 * In rooms whose messages begin to notify, only those from now on count. Where they cease to, what was kept for the user alone still counts:
 * mentions, for example.
 */
async function countFromNow(tx: Tx, userNid: number, before: OwnRules, after: OwnRules): Promise<void> {
  const [old, now] = [compileRuleset(before), compileRuleset(after)]
  const rooms = await getJoinedRooms(tx, userNid)
  const begun = rooms.filter(({ room_id: id }) => now.inRoom(id).countsMessages && !old.inRoom(id).countsMessages)
  if (begun.length === 0) return
  await countFromHere(
    tx,
    userNid,
    begun.map(({ room_nid }) => room_nid),
  )
}

function errorOf({ errcode, reason }: RuleRefusal): ProtocolError {
  return errcode === 'M_UNKNOWN'
    ? new ProtocolError(errcode, reason, { status: 400 })
    : new ProtocolError(errcode, reason)
}
