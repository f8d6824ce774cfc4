import type { UserId } from '../ids.ts'
import type { JsonObject, JsonValue } from '../json.ts'
import {
  compileCondition,
  compileNames,
  isAboutEventAlone,
  OWN_USER_ID,
  type PersonalTest,
  type PushCondition,
  type PushTest,
  THREAD_SUBSCRIPTION,
} from './conditions.ts'
import { type PushContext, type PushEvent, PushedEvent } from './pushed-event.ts'

/** `notify`, or a tweak of the notification: `{"set_tweak": "sound", "value": "default"}`. Others are kept and do nothing. */
export type PushAction = string | JsonObject

/** A rule as clients read it. */
export interface PushRule {
  rule_id: string
  default: boolean
  enabled: boolean
  conditions?: JsonObject[]
  pattern?: string
  actions: PushAction[]
}

export type PushRuleKind = 'override' | 'content' | 'postcontent' | 'room' | 'sender' | 'underride'
export type PushRuleset = Record<PushRuleKind, PushRule[]>

/** A server-default rule, before it is made for a user. */
interface DefaultRule {
  readonly id: string
  readonly isDisabled?: true
  readonly conditions: readonly PushCondition[]
  readonly actions: readonly PushAction[]
}

const SOUND: PushAction = { set_tweak: 'sound', value: 'default' }
/** The sound of calls. */
export const CALL_RING = 'ring'
const RING: PushAction = { set_tweak: 'sound', value: CALL_RING }
const HIGHLIGHT: PushAction = { set_tweak: 'highlight' }

function typeIs(pattern: string): PushCondition {
  return { kind: 'event_match', key: 'type', pattern }
}

/** Invitations to calls of groups, under the name that clients use until MSC4075 is in the specification. */
export const CALL_INVITE = 'org.matrix.msc4075.rtc.invite'

const MENTIONS_USER: PushCondition = {
  kind: 'event_property_contains',
  key: 'content.m\\.mentions.user_ids',
  value: OWN_USER_ID,
}
const MENTIONS_ROOM: PushCondition = { kind: 'event_property_is', key: 'content.m\\.mentions.room', value: true }
const STATE_KEY_IS_EMPTY: PushCondition = { kind: 'event_match', key: 'state_key', pattern: '' }
const IS_ONE_TO_ONE: PushCondition = { kind: 'room_member_count', is: '2' }
const MAY_NOTIFY_ROOM: PushCondition = { kind: 'sender_notification_permission', key: 'room' }

/**
 * The server-default rules, in the order they are tried (client-server API, "Predefined Rules"). The three rules that searched the body
 * for mentions left the specification in release 1.17: see docs/decisions/0013. The two of MSC4075 let invitations to calls ring.
 */
export const DEFAULT_RULES = {
  override: [
    { id: '.m.rule.master', isDisabled: true, conditions: [], actions: [] },
    {
      id: '.m.rule.suppress_notices',
      conditions: [{ kind: 'event_match', key: 'content.msgtype', pattern: 'm.notice' }],
      actions: [],
    },
    {
      id: '.m.rule.invite_for_me',
      conditions: [
        typeIs('m.room.member'),
        { kind: 'event_match', key: 'content.membership', pattern: 'invite' },
        { kind: 'event_match', key: 'state_key', pattern: OWN_USER_ID },
      ],
      actions: ['notify', SOUND],
    },
    { id: '.m.rule.member_event', conditions: [typeIs('m.room.member')], actions: [] },
    {
      id: '.org.matrix.msc4075.rule.rtc.invite_for_me',
      conditions: [typeIs(CALL_INVITE), MENTIONS_USER],
      actions: ['notify', RING],
    },
    { id: '.m.rule.is_user_mention', conditions: [MENTIONS_USER], actions: ['notify', SOUND, HIGHLIGHT] },
    {
      id: '.org.matrix.msc4075.rule.rtc.invite_for_room',
      conditions: [typeIs(CALL_INVITE), MENTIONS_ROOM, MAY_NOTIFY_ROOM],
      actions: ['notify', RING],
    },
    { id: '.m.rule.is_room_mention', conditions: [MENTIONS_ROOM, MAY_NOTIFY_ROOM], actions: ['notify', HIGHLIGHT] },
    {
      id: '.m.rule.tombstone',
      conditions: [typeIs('m.room.tombstone'), STATE_KEY_IS_EMPTY],
      actions: ['notify', HIGHLIGHT],
    },
    { id: '.m.rule.reaction', conditions: [typeIs('m.reaction')], actions: [] },
    { id: '.m.rule.room.server_acl', conditions: [typeIs('m.room.server_acl'), STATE_KEY_IS_EMPTY], actions: [] },
    {
      id: '.m.rule.suppress_edits',
      conditions: [{ kind: 'event_property_is', key: 'content.m\\.relates_to.rel_type', value: 'm.replace' }],
      actions: [],
    },
  ],
  content: [],
  // They begin with a user's first subscription: those who follow no thread hear of all (docs/decisions/0015).
  postcontent: [
    {
      id: '.io.element.msc4306.rule.unsubscribed_thread',
      isDisabled: true,
      conditions: [{ kind: THREAD_SUBSCRIPTION, subscribed: false }],
      actions: [],
    },
    {
      id: '.io.element.msc4306.rule.subscribed_thread',
      isDisabled: true,
      conditions: [{ kind: THREAD_SUBSCRIPTION, subscribed: true }],
      actions: ['notify', SOUND],
    },
  ],
  room: [],
  sender: [],
  underride: [
    { id: '.m.rule.call', conditions: [typeIs('m.call.invite')], actions: ['notify', RING] },
    {
      id: '.m.rule.encrypted_room_one_to_one',
      conditions: [IS_ONE_TO_ONE, typeIs('m.room.encrypted')],
      actions: ['notify', SOUND],
    },
    {
      id: '.m.rule.room_one_to_one',
      conditions: [IS_ONE_TO_ONE, typeIs('m.room.message')],
      actions: ['notify', SOUND],
    },
    { id: '.m.rule.message', conditions: [typeIs('m.room.message')], actions: ['notify'] },
    { id: '.m.rule.encrypted', conditions: [typeIs('m.room.encrypted')], actions: ['notify'] },
  ],
} as const satisfies Record<PushRuleKind, readonly DefaultRule[]>

/** The kinds of rules in the order they are tried. */
export const PUSH_RULE_KINDS: readonly PushRuleKind[] = [
  'override',
  'content',
  'postcontent',
  'room',
  'sender',
  'underride',
]

export function isPushRuleKind(kind: string): kind is PushRuleKind {
  return (PUSH_RULE_KINDS as readonly string[]).includes(kind)
}

/** What a user changed about a server-default rule. */
export interface DefaultChange {
  readonly enabled?: boolean
  readonly actions?: readonly PushAction[]
}

/** The server-default rules of a kind as a user reads them. */
export function defaultRules(
  kind: PushRuleKind,
  userId: UserId,
  changes: Readonly<Record<string, DefaultChange>> = {},
): PushRule[] {
  return (DEFAULT_RULES[kind] as readonly DefaultRule[]).map((rule) => personalise(rule, userId, changes[rule.id]))
}

function personalise(rule: DefaultRule, userId: UserId, change: DefaultChange | undefined): PushRule {
  const ownId = (value: JsonValue | symbol) => (value === OWN_USER_ID ? userId : (value as JsonValue))
  const owned = (condition: PushCondition): JsonObject =>
    Object.fromEntries(Object.entries(condition).map(([key, value]) => [key, ownId(value)]))
  return {
    rule_id: rule.id,
    default: true,
    enabled: change?.enabled ?? !rule.isDisabled,
    conditions: rule.conditions.map(owned),
    actions: [...(change?.actions ?? rule.actions)],
  }
}

/** The result of a rule for an event. */
export interface PushOutcome {
  readonly notify: boolean
  readonly highlight: boolean
  /** The sound of the notification, if it has one. */
  readonly sound: string | undefined
  /** All tweaks by name, for push gateways. */
  readonly tweaks: Readonly<Record<string, JsonValue>>
  /** As the rule states them, without those that do nothing. */
  readonly actions: readonly PushAction[]
}

/** The result where no rule applies. */
export const SILENCE: PushOutcome = { notify: false, highlight: false, sound: undefined, tweaks: {}, actions: [] }

/** The result of a rule with these actions. Without `notify` there is no notification, so that tweaks mean nothing. */
export function outcomeOf(actions: readonly PushAction[]): PushOutcome {
  if (!actions.includes('notify')) return SILENCE
  const tweaks: Record<string, JsonValue> = {}
  for (const action of actions) {
    if (typeof action !== 'object' || typeof action.set_tweak !== 'string') continue
    const { set_tweak: name, value } = action
    // A highlight without a value is one.
    if (value !== undefined || name === 'highlight') tweaks[name] = value ?? true
  }
  return {
    notify: true,
    highlight: tweaks.highlight === true,
    sound: typeof tweaks.sound === 'string' ? tweaks.sound : undefined,
    tweaks,
    actions: actions.filter((action) => action === 'notify' || typeof action === 'object'),
  }
}

/** A rule that is ready to be tried. */
export interface CompiledRule {
  readonly id: string
  /** Rules with the same key do the same, for any user. */
  readonly key: string
  /** Conditions that hold for all users of a room or for none. */
  readonly tests: readonly PushTest[]
  readonly personal: readonly PersonalTest[]
  /** For a rule about certain rooms: what is left to test in a room, or undefined if it never applies there. */
  readonly testsIn?: (roomId: string) => readonly PushTest[] | undefined
  readonly outcome: PushOutcome
}

interface CompiledDefault extends CompiledRule {
  readonly isDisabled: boolean
  readonly isAboutEventAlone: boolean
}

/** The conditions of a rule, apart by whether they are about the user. */
export function compileTests(conditions: readonly PushCondition[]): Pick<CompiledRule, 'tests' | 'personal'> {
  const tests: PushTest[] = []
  const personal: PersonalTest[] = []
  for (const condition of conditions) {
    const holds = compileCondition(condition)
    const names = compileNames(condition)
    if (names) personal.push({ holds, names })
    else tests.push(holds)
  }
  return { tests, personal }
}

const compileDefault = ({ id, isDisabled, conditions, actions }: DefaultRule): CompiledDefault => ({
  id,
  key: id,
  ...compileTests(conditions),
  outcome: outcomeOf(actions),
  isDisabled: isDisabled === true,
  isAboutEventAlone: conditions.every(isAboutEventAlone),
})

/** The server-default rules of each kind, compiled once for all users. */
export const COMPILED_DEFAULTS: Readonly<Record<PushRuleKind, readonly CompiledDefault[]>> = {
  override: DEFAULT_RULES.override.map(compileDefault),
  content: [],
  postcontent: DEFAULT_RULES.postcontent.map(compileDefault),
  room: [],
  sender: [],
  underride: DEFAULT_RULES.underride.map(compileDefault),
}

/** Those that are tried for users who have changed none. */
export const ENABLED_DEFAULTS: readonly CompiledRule[] = PUSH_RULE_KINDS.flatMap((kind) =>
  COMPILED_DEFAULTS[kind].filter(({ isDisabled }) => !isDisabled),
)

const ABOUT_EVENT_ALONE = (ENABLED_DEFAULTS as readonly CompiledDefault[]).filter((rule) => rule.isAboutEventAlone)

/** The result of the first rule that applies. Users are never notified of their own events. */
export function evaluateRules(rules: readonly CompiledRule[], event: PushedEvent, context: PushContext): PushOutcome {
  if (event.pdu.sender === context.userId) return SILENCE
  event.begin()
  for (const { tests, personal, outcome } of rules) {
    if (holdForAll(tests, event, context) && holdForUser(personal, event, context)) return outcome
  }
  return SILENCE
}

export function holdForAll(tests: readonly PushTest[], event: PushedEvent, context: PushContext): boolean {
  for (const test of tests) if (!test(event, context)) return false
  return true
}

export function holdForUser(tests: readonly PersonalTest[], event: PushedEvent, context: PushContext): boolean {
  for (const { holds } of tests) if (!holds(event, context)) return false
  return true
}

/** The result of the server-default rules for an event and a user. */
export function evaluateDefaults(event: PushEvent, context: PushContext): PushOutcome {
  return evaluateRules(ENABLED_DEFAULTS, new PushedEvent(event), context)
}

const NOBODY: PushContext = {
  userId: '',
  displayName: undefined,
  memberCount: 0,
  senderPower: 0,
  powerToNotify: () => Number.POSITIVE_INFINITY,
}

/**
 * Whether an event counts as unread for everyone in its room who has the default rules and is not mentioned in it:
 * messages, encrypted events, calls and tombstones; not notices, edits, reactions or other state.
 */
export function isNotifiable(event: PushEvent): boolean {
  return evaluateRules(ABOUT_EVENT_ALONE, new PushedEvent(event), NOBODY).notify
}
