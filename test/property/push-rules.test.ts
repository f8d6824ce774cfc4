import fc from 'fast-check'
import { describe, it } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { compileRuleset } from '../../src/core/push/compiled-rules.ts'
import { CALL_INVITE, evaluateDefaults, isNotifiable } from '../../src/core/push/default-rules.ts'
import { standsOutFor } from '../../src/core/push/highlights.ts'
import type { OwnRule, OwnRules } from '../../src/core/push/own-rules.ts'
import { type PushEvent, PushedEvent } from '../../src/core/push/pushed-event.ts'
import { outcomeForUser } from '../../src/core/push/shared-outcome.ts'

const members = [
  { userId: '@ann:x.example', displayName: 'Ann-Marie' },
  { userId: '@bo.b:x.example', displayName: 'ann' },
  { userId: '@c:x.example', displayName: undefined },
  { userId: '@room:x.example', displayName: '李 明' },
].map(({ userId, displayName }) => ({ userId: userId as UserId, displayName }))

const userId = fc.constantFrom(...members.map((member) => member.userId))
const word = fc.constantFrom('ann', 'Ann-Marie', 'bo.b', 'c', '@room', '李 明', 'x', ' ', '-', '.', ', ')
const body = fc.array(word, { maxLength: 6 }).map((words) => words.join(''))

function maybe<T extends JsonValue>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(values, { nil: undefined })
}

const content = fc
  .record({
    body: maybe(body),
    msgtype: maybe(fc.constantFrom('m.text', 'm.notice')),
    membership: maybe(fc.constantFrom('invite', 'join')),
    'm.mentions': maybe(
      fc.oneof(
        fc.record({ user_ids: fc.array(userId, { maxLength: 3 }), room: fc.boolean() }),
        fc.constantFrom({}, 'odd', { user_ids: 'odd', room: 'true' }),
      ),
    ),
    'm.relates_to': maybe(fc.constantFrom({ rel_type: 'm.replace' }, { rel_type: 'm.thread' }, 'odd')),
  })
  .map((fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject)

const TYPES = [
  'm.room.message',
  'm.room.encrypted',
  'm.reaction',
  'm.room.member',
  'm.room.tombstone',
  'm.room.server_acl',
  'm.call.invite',
  CALL_INVITE,
  'other',
]

const event: fc.Arbitrary<PushEvent> = fc
  .record({
    type: fc.constantFrom(...TYPES),
    sender: userId,
    content,
    stateKey: fc.option(fc.constantFrom('', '@ann:x.example'), { nil: undefined }),
  })
  .map(({ stateKey, ...rest }) => (stateKey === undefined ? rest : { ...rest, state_key: stateKey }))

describe('the quick answers are those of the rules', () => {
  const index = new Set(members.map(({ userId }) => userId))
  const context = (senderPower: number) => ({ memberCount: 4, senderPower, powerToNotify: () => 50 })

  it('standsOutFor is evaluateDefaults for each member', () => {
    fc.assert(
      fc.property(event, fc.constantFrom(0, 50), (sent, power) => {
        const { userIds, highlights } = standsOutFor(sent, index, power >= 50)
        const found = new Set(userIds)
        return members.every((member) => {
          const { notify, highlight } = evaluateDefaults(sent, { ...member, ...context(power) })
          if (found.has(member.userId)) return notify && highlight === highlights
          // A membership concerns its user alone, and everybody hears of it in another way.
          const counts = isNotifiable(sent) && member.userId !== sent.sender
          return !highlight && (sent.type === 'm.room.member' || notify === counts)
        })
      }),
      { numRuns: 5000 },
    )
  })

  it('isNotifiable is evaluateDefaults for a member whom the event does not concern', () => {
    const stranger = { userId: '@stranger:x.example', displayName: undefined, ...context(0) }
    fc.assert(fc.property(event, (sent) => isNotifiable(sent) === evaluateDefaults(sent, stranger).notify))
  })
})

const ROOM = '!room:x.example'
const actions = fc.constantFrom<OwnRule['actions']>([], ['notify'], ['notify', { set_tweak: 'highlight' }])
const condition = fc.constantFrom<JsonObject>(
  { kind: 'contains_display_name' },
  { kind: 'event_match', key: 'content.body', pattern: 'ann' },
  { kind: 'event_match', key: 'room_id', pattern: ROOM },
  { kind: 'event_match', key: 'room_id', pattern: '!other:x.example' },
  { kind: 'event_match', key: 'sender', pattern: '@c:x.example' },
  { kind: 'room_member_count', is: '>3' },
  { kind: 'sender_notification_permission', key: 'room' },
  { kind: 'io.element.msc4306.thread_subscription', subscribed: true },
  { kind: 'unheard_of' },
)
const conditional = fc.record({
  id: fc.constantFrom('a', 'b'),
  conditions: fc.array(condition, { maxLength: 3 }),
  actions,
})
const own: fc.Arbitrary<OwnRules> = fc.record({
  own: fc.record({
    override: fc.array(conditional, { maxLength: 2 }),
    content: fc.array(fc.record({ id: fc.constant('w'), pattern: word, actions }), { maxLength: 1 }),
    room: fc.array(fc.record({ id: fc.constantFrom(ROOM, '!other:x.example'), actions }), { maxLength: 1 }),
    sender: fc.array(fc.record({ id: userId, actions }), { maxLength: 1 }),
    underride: fc.array(conditional, { maxLength: 1 }),
  }),
  changes: fc.dictionary(
    fc.constantFrom(
      '.m.rule.master',
      '.m.rule.is_user_mention',
      '.m.rule.invite_for_me',
      '.m.rule.message',
      '.io.element.msc4306.rule.unsubscribed_thread',
    ),
    fc.oneof(fc.record({ enabled: fc.boolean() }), fc.record({ actions })),
    { maxKeys: 2 },
  ),
})

describe('rules of many users', () => {
  it('give each of them what they give alone', () => {
    fc.assert(
      fc.property(
        fc.array(own, { minLength: 1, maxLength: 3 }),
        event,
        fc.constantFrom(0, 50),
        maybe(userId),
        (all, sent, power, follower) => {
          const pushed = new PushedEvent(sent, { roomId: ROOM })
          const facts = { memberCount: 4, senderPower: power, powerToNotify: () => 50 }
          const isInThread = follower !== undefined
          const nobody = { userId: '', displayName: undefined, ...facts, follows: isInThread ? false : undefined }
          const tried = new Map()
          return all.every((stored) => {
            const rules = compileRuleset(stored).inRoom(ROOM)
            const shared = rules.evaluateForAll(pushed, nobody, tried)
            return members.every((member) => {
              const context = { ...member, ...facts, follows: isInThread ? member.userId === follower : undefined }
              const alone = compileRuleset(stored).evaluate(pushed, context)
              const isNamed = shared.named === undefined || shared.named.some((ids) => ids.includes(member.userId))
              const same = JSON.stringify(outcomeForUser(shared, pushed, context)) === JSON.stringify(alone)
              // Who is not named may be left out without a look, except the sender.
              const others =
                isNamed || member.userId === sent.sender || JSON.stringify(shared.outcome) === JSON.stringify(alone)
              return same && others
            })
          })
        },
      ),
      { numRuns: 1000 },
    )
  })

  it('are in one group only if they give the same', () => {
    fc.assert(
      fc.property(own, own, event, (one, other, sent) => {
        const [first, second] = [compileRuleset(one).inRoom(ROOM), compileRuleset(other).inRoom(ROOM)]
        if (first.key !== second.key) return true
        const pushed = new PushedEvent(sent, { roomId: ROOM })
        return members.every((member) => {
          const context = { ...member, memberCount: 4, senderPower: 0, powerToNotify: () => 50 }
          return JSON.stringify(first.evaluate(pushed, context)) === JSON.stringify(second.evaluate(pushed, context))
        })
      }),
      { numRuns: 1000 },
    )
  })
})
