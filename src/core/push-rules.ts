import { localpartOf, type UserId } from './ids.ts'
import {
  compileCondition,
  compileContentPattern,
  isAboutEventAlone,
  OWN_LOCALPART,
  OWN_USER_ID,
  type PushCondition,
  type PushContext,
  type PushEvent,
  type PushTest,
} from './push-conditions.ts'

export type PushAction = 'notify' | { set_tweak: string; value?: string | boolean }

/** A rule as clients read it. */
export interface PushRule {
  rule_id: string
  default: boolean
  enabled: boolean
  conditions?: object[]
  pattern?: string
  actions: PushAction[]
}

export type PushRuleKind = 'override' | 'content' | 'room' | 'sender' | 'underride'
export type PushRuleset = Record<PushRuleKind, PushRule[]>

/** A server-default rule, before it is made for a user. */
interface DefaultRule {
  readonly id: string
  readonly isDisabled?: true
  /** Finds mentions in the body, as before `m.mentions` existed: it applies only to events without `m.mentions`. */
  readonly isLegacyMention?: true
  readonly conditions?: readonly PushCondition[]
  readonly pattern?: typeof OWN_LOCALPART
  readonly actions: readonly PushAction[]
}

const SOUND: PushAction = { set_tweak: 'sound', value: 'default' }
const RING: PushAction = { set_tweak: 'sound', value: 'ring' }
const HIGHLIGHT: PushAction = { set_tweak: 'highlight' }

function typeIs(pattern: string): PushCondition {
  return { kind: 'event_match', key: 'type', pattern }
}

const STATE_KEY_IS_EMPTY: PushCondition = { kind: 'event_match', key: 'state_key', pattern: '' }
const IS_ONE_TO_ONE: PushCondition = { kind: 'room_member_count', is: '2' }
const MAY_NOTIFY_ROOM: PushCondition = { kind: 'sender_notification_permission', key: 'room' }

/**
 * The server-default rules, in the order they are tried (client-server API, "Predefined Rules"). The three legacy mention
 * rules left the specification in release 1.17; clients and bots that do not list whom they mention still rely on them.
 */
const DEFAULT_RULES = {
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
      id: '.m.rule.is_user_mention',
      conditions: [{ kind: 'event_property_contains', key: 'content.m\\.mentions.user_ids', value: OWN_USER_ID }],
      actions: ['notify', SOUND, HIGHLIGHT],
    },
    {
      id: '.m.rule.contains_display_name',
      isLegacyMention: true,
      conditions: [{ kind: 'contains_display_name' }],
      actions: ['notify', SOUND, HIGHLIGHT],
    },
    {
      id: '.m.rule.is_room_mention',
      conditions: [{ kind: 'event_property_is', key: 'content.m\\.mentions.room', value: true }, MAY_NOTIFY_ROOM],
      actions: ['notify', HIGHLIGHT],
    },
    {
      id: '.m.rule.roomnotif',
      isLegacyMention: true,
      conditions: [{ kind: 'event_match', key: 'content.body', pattern: '@room' }, MAY_NOTIFY_ROOM],
      actions: ['notify', HIGHLIGHT],
    },
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
  content: [
    {
      id: '.m.rule.contains_user_name',
      isLegacyMention: true,
      pattern: OWN_LOCALPART,
      actions: ['notify', SOUND, HIGHLIGHT],
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

/** The rules of a user who has changed none, as `GET pushrules/` and `m.push_rules` show them. */
export function defaultRuleset(userId: UserId): PushRuleset {
  const rulesOf = (kind: PushRuleKind) => DEFAULT_RULES[kind].map((rule) => personalise(rule, userId))
  return {
    override: rulesOf('override'),
    content: rulesOf('content'),
    room: rulesOf('room'),
    sender: rulesOf('sender'),
    underride: rulesOf('underride'),
  }
}

function personalise({ id, isDisabled, conditions, pattern, actions }: DefaultRule, userId: UserId): PushRule {
  const ownId = (value: unknown) => (value === OWN_USER_ID ? userId : value)
  const owned = (condition: PushCondition) =>
    Object.fromEntries(Object.entries(condition).map(([key, value]) => [key, ownId(value)]))
  return {
    rule_id: id,
    default: true,
    enabled: !isDisabled,
    ...(conditions === undefined ? {} : { conditions: conditions.map(owned) }),
    ...(pattern === undefined ? {} : { pattern: localpartOf(userId) }),
    actions: [...actions],
  }
}

/** The result of a rule for an event. */
export interface Notification {
  readonly notify: boolean
  readonly highlight: boolean
}

const SILENCE: Notification = { notify: false, highlight: false }

interface CompiledRule {
  readonly matches: PushTest
  readonly isAboutEventAlone: boolean
  readonly outcome: Notification
}

const COMPILED: readonly CompiledRule[] = Object.values<readonly DefaultRule[]>(DEFAULT_RULES)
  .flat()
  .filter((rule) => !rule.isDisabled)
  .map(compileRule)

const ABOUT_EVENT_ALONE = COMPILED.filter((rule) => rule.isAboutEventAlone)

function compileRule({ conditions = [], pattern, isLegacyMention, actions }: DefaultRule): CompiledRule {
  const tests = conditions.map(compileCondition)
  if (pattern !== undefined) tests.push(compileContentPattern(pattern))
  if (isLegacyMention) tests.unshift((event) => event.content['m.mentions'] === undefined)
  return {
    matches: (event, context) => tests.every((test) => test(event, context)),
    isAboutEventAlone: pattern === undefined && conditions.every(isAboutEventAlone),
    outcome: { notify: actions.includes('notify'), highlight: actions.includes(HIGHLIGHT) },
  }
}

/** The result of the server-default rules for an event and a user. Users are never notified of their own events. */
export function evaluateDefaults(event: PushEvent, context: PushContext): Notification {
  if (event.sender === context.userId) return SILENCE
  return COMPILED.find((rule) => rule.matches(event, context))?.outcome ?? SILENCE
}

const NOBODY: PushContext = {
  userId: '',
  displayName: undefined,
  memberCount: 0,
  senderPower: 0,
  roomNotificationLevel: Number.POSITIVE_INFINITY,
}

/**
 * Whether an event counts as unread for everyone in its room who has the default rules and is not mentioned in it:
 * messages, encrypted events, calls and tombstones; not notices, edits, reactions or other state.
 */
export function isNotifiable(event: PushEvent): boolean {
  return ABOUT_EVENT_ALONE.find((rule) => rule.matches(event, NOBODY))?.outcome.notify ?? false
}
