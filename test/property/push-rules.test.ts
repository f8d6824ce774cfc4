import fc from 'fast-check'
import { describe, it } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { CALL_INVITE, evaluateDefaults, isNotifiable } from '../../src/core/push/default-rules.ts'
import { standsOutFor } from '../../src/core/push/highlights.ts'
import type { PushEvent } from '../../src/core/push/pushed-event.ts'

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
