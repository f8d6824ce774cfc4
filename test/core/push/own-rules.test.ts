import { describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { compileRuleset } from '../../../src/core/push/compiled-rules.ts'
import {
  NO_OWN_RULES,
  type OwnRule,
  type OwnRules,
  putRule,
  RuleRefusal,
  rulesetOf,
} from '../../../src/core/push/own-rules.ts'
import { type PushContext, type PushEvent, PushedEvent } from '../../../src/core/push/pushed-event.ts'
import { cpuMs } from '../../support/slowness.ts'

const ALICE = '@alice:here.example' as UserId
const BOB = '@bob:here.example'
const ROOM = '!room:here.example'

const alice: PushContext = {
  userId: ALICE,
  displayName: 'Alice L.',
  memberCount: 10,
  senderPower: 0,
  powerToNotify: (key) => (key === 'room' ? 75 : 50),
}

const text = (body: unknown, more: JsonObject = {}): PushEvent => ({
  type: 'm.room.message',
  sender: BOB,
  content: { msgtype: 'm.text', body: body as string, ...more },
})

const rules = (own: OwnRules['own'], changes: OwnRules['changes'] = {}): OwnRules => ({ own, changes })
const MARK = ['notify', { set_tweak: 'marked', value: true }]

/** Whether an override rule with these conditions applies. */
function applies(conditions: JsonObject[], event: PushEvent, context: PushContext = alice): boolean {
  const compiled = compileRuleset(rules({ override: [{ id: 'own', conditions, actions: MARK }] }))
  return compiled.evaluate(new PushedEvent(event, { roomId: ROOM }), context).tweaks.marked === true
}

const match = (key: string, pattern: string) => ({ kind: 'event_match', key, pattern })

describe('conditions of own rules', () => {
  it.each([
    ['a word of the body, in any case', match('content.body', 'CAKE'), text('I like Cake!'), true],
    ['a part of a word', match('content.body', 'cake'), text('pancakes'), false],
    ['a word beside letters beyond ASCII', match('content.body', 'cake'), text('écakeé'), true],
    ['a glob in the body', match('content.body', 'c?ke*lie'), text('the cake is a lie.'), true],
    ['another property as a whole', match('content.msgtype', 'm.*'), text('x'), true],
    ['a part of another property', match('content.msgtype', 'text'), text('x'), false],
    ['a number', match('content.body', '7'), text(7), false],
    ['the room', match('room_id', ROOM), text('x'), true],
    ['a name with a dot', match('content.m\\.foo', 'bar'), text('x', { 'm.foo': 'bar' }), true],
    ['a property that is not there', match('content.nothing', '*'), text('x'), false],
    ['1 is 1', { kind: 'event_property_is', key: 'content.n', value: 1 }, text('x', { n: 1 }), true],
    ['"1" is not 1', { kind: 'event_property_is', key: 'content.n', value: 1 }, text('x', { n: '1' }), false],
    ['true is not 1', { kind: 'event_property_is', key: 'content.n', value: 1 }, text('x', { n: true }), false],
    ['null is null', { kind: 'event_property_is', key: 'content.n', value: null }, text('x', { n: null }), true],
    ['nothing is not null', { kind: 'event_property_is', key: 'content.n', value: null }, text('x'), false],
    [
      'an element',
      { kind: 'event_property_contains', key: 'content.n', value: 'a' },
      text('x', { n: ['b', 'a'] }),
      true,
    ],
    ['no list', { kind: 'event_property_contains', key: 'content.n', value: 'a' }, text('x', { n: 'a' }), false],
    [
      'a nested list',
      { kind: 'event_property_contains', key: 'content.n', value: 'a' },
      text('x', { n: [['a']] }),
      false,
    ],
    ['the display name', { kind: 'contains_display_name' }, text('hello alice l.'), true],
    ['the display name in a word', { kind: 'contains_display_name' }, text('malice l.x'), false],
    ['the count of members', { kind: 'room_member_count', is: '>=10' }, text('x'), true],
    ['no power to notify', { kind: 'sender_notification_permission', key: 'room' }, text('x'), false],
    ['an unknown kind', { kind: 'org.example.moon' }, text('x'), false],
    ['a known kind without its fields', { kind: 'event_match', key: 'content.body' }, text('x'), false],
    ['fields of odd types', { kind: 'event_match', key: 7, pattern: {} }, text('x'), false],
    [
      'a value that is an object',
      { kind: 'event_property_is', key: 'content.n', value: {} },
      text('x', { n: {} }),
      false,
    ],
  ])('%s', (_name, condition, event, holds) => {
    expect(applies([condition as JsonObject], event)).toBe(holds)
  })

  it('the power for a key without a level of its own is 50', () => {
    const permission = (key: string, senderPower: number) =>
      applies([{ kind: 'sender_notification_permission', key }], text('x'), { ...alice, senderPower })
    expect([permission('room', 74), permission('room', 75)]).toEqual([false, true])
    expect([permission('other', 49), permission('other', 50)]).toEqual([false, true])
  })

  it('a display name that is empty or missing is in no text', () => {
    for (const displayName of ['', undefined]) {
      expect(applies([{ kind: 'contains_display_name' }], text('x '), { ...alice, displayName })).toBe(false)
    }
  })
})

describe('the order of rules', () => {
  const outcome = (own: OwnRules, event: PushEvent) =>
    compileRuleset(own).evaluate(new PushedEvent(event, { roomId: ROOM }), alice)
  const rule = (id: string, value: string, more: object = {}): OwnRule => ({
    id,
    actions: ['notify', { set_tweak: 'sound', value }],
    ...more,
  })

  it('is override, content, room, sender, underride; own rules before the default ones', () => {
    const kinds: OwnRules['own'] = {
      override: [rule('o', 'override')],
      content: [rule('c', 'content', { pattern: 'cake' })],
      room: [rule(ROOM, 'room')],
      sender: [rule(BOB, 'sender')],
      underride: [rule('u', 'underride')],
    }
    const order = ['override', 'content', 'room', 'sender', 'underride'] as const
    const left = { ...kinds }
    for (const kind of order) {
      expect(outcome(rules(left), text('cake')).sound).toBe(kind)
      delete left[kind]
    }
    expect(outcome(rules(left), text('cake'))).toMatchObject({ notify: true, sound: undefined })
  })

  it('puts master before all, once it is enabled', () => {
    const all = rules({ override: [rule('o', 'mine')] }, { '.m.rule.master': { enabled: true } })
    expect(outcome(all, text('x')).notify).toBe(false)
    expect(
      rulesetOf(all, ALICE)
        .override.map(({ rule_id }) => rule_id)
        .slice(0, 3),
    ).toEqual(['.m.rule.master', 'o', '.m.rule.suppress_notices'])
  })

  it('tries the encrypted one-to-one rule before the plain one', () => {
    const order = rulesetOf(NO_OWN_RULES, ALICE).underride.map(({ rule_id }) => rule_id)
    expect(order.indexOf('.m.rule.encrypted_room_one_to_one')).toBeLessThan(order.indexOf('.m.rule.room_one_to_one'))
  })

  it('leaves out rules that are off, and what a user switched off of the default ones', () => {
    expect(outcome(rules({ override: [rule('o', 'mine', { isOff: true })] }), text('x')).sound).toBeUndefined()
    expect(outcome(rules({}, { '.m.rule.message': { enabled: false } }), text('x')).notify).toBe(false)
  })

  it('takes the actions of a default rule from the user', () => {
    const loud = rules({}, { '.m.rule.message': { actions: ['notify', { set_tweak: 'sound', value: 'bell' }] } })
    expect(outcome(loud, text('x'))).toMatchObject({ notify: true, sound: 'bell', tweaks: { sound: 'bell' } })
  })

  it('dont_notify, coalesce and unknown actions do nothing', () => {
    for (const actions of [['dont_notify'], ['coalesce'], ['org.example.dance'], []]) {
      expect(outcome(rules({ override: [{ id: 'o', actions, conditions: [] }] }), text('x'))).toMatchObject({
        notify: false,
        actions: [],
      })
    }
  })

  it('never notifies of own events, whatever the rules', () => {
    const all = rules({ override: [rule('o', 'mine', { conditions: [] })] })
    expect(outcome(all, { ...text('x'), sender: ALICE }).notify).toBe(false)
  })

  it.each([
    ['no rule', 7],
    ['no conditions', { id: 'x', actions: [], conditions: [null, 7, 'x'] }],
    ['an unknown default rule', undefined],
  ])('survives %s among what is stored', (_, odd) => {
    const stored = {
      own: { override: odd === undefined ? [] : [odd] },
      changes: { '.m.rule.roomnotif': { enabled: false } },
    }
    expect(compileRuleset(stored as never).evaluate(new PushedEvent(text('x')), alice).notify).toBe(true)
  })
})

describe('what rules mean for counts in a room', () => {
  const inRoom = (own: OwnRules, room = ROOM) => compileRuleset(own).inRoom(room)
  const mute: OwnRules = rules({ override: [{ id: ROOM, actions: [], conditions: [match('room_id', ROOM)] }] })

  it('a muted room is silent, and the others stay as they are', () => {
    expect(inRoom(mute).standing).toBe('silent')
    expect(inRoom(mute, '!other:here.example').standing).toBe('default')
  })

  it('a room with mentions only is counted one by one, from nothing', () => {
    const mentions = rules({ room: [{ id: ROOM, actions: [] }] })
    expect(inRoom(mentions)).toMatchObject({ standing: 'own', countsMessages: false })
    expect(inRoom(mentions, '!other:here.example').standing).toBe('default')
  })

  it('keywords are counted beside the messages', () => {
    const keyword = rules({ content: [{ id: 'k', pattern: 'cake', actions: ['notify', { set_tweak: 'highlight' }] }] })
    expect(inRoom(keyword)).toMatchObject({ standing: 'own', countsMessages: true })
  })

  it('a sound makes no difference to counts', () => {
    const loud = rules({}, { '.m.rule.message': { actions: ['notify', { set_tweak: 'sound', value: 'bell' }] } })
    expect(inRoom(loud).standing).toBe('default')
    expect(inRoom(NO_OWN_RULES).standing).toBe('default')
  })

  it('everything is silent behind master', () => {
    expect(inRoom(rules({}, { '.m.rule.master': { enabled: true } })).standing).toBe('silent')
  })
})

describe('changes of the list', () => {
  const rule = (id: string) => ({ id, actions: [], conditions: [] })
  const put = (from: OwnRules, id: string, place: { before?: string; after?: string } = {}) => {
    const next = putRule(from, 'override', rule(id), place)
    if (next instanceof RuleRefusal) throw new Error(next.reason)
    return next
  }
  const ids = (of: OwnRules) => of.own.override?.map(({ id }) => id).join('')
  const abc = put(put(put(NO_OWN_RULES, 'c'), 'b'), 'a')

  it('puts a new rule first', () => expect(ids(abc)).toBe('abc'))
  it('leaves a rule that is written again where it is', () => expect(ids(put(abc, 'b'))).toBe('abc'))
  it('puts a rule before another', () => expect(ids(put(abc, 'x', { before: 'b' }))).toBe('axbc'))
  it('puts a rule after another', () => expect(ids(put(abc, 'x', { after: 'b' }))).toBe('abxc'))
  it('lets before win', () => expect(ids(put(abc, 'x', { before: 'a', after: 'c' }))).toBe('xabc'))
  it('moves a rule that exists', () => expect(ids(put(abc, 'a', { after: 'c' }))).toBe('bca'))
  it('leaves a rule that is put beside itself', () => expect(ids(put(abc, 'b', { before: 'b' }))).toBe('abc'))
  it.each(['x', '.m.rule.master'])('refuses a place beside %s', (before) => {
    expect(putRule(abc, 'override', rule('y'), { before })).toMatchObject({ errcode: 'M_UNKNOWN' })
  })
})

describe('the cost of hostile rules', () => {
  const event = new PushedEvent(text('ab'.repeat(32_000)), { roomId: ROOM })
  const own = Array.from({ length: 2_000 }, (_, at) => ({
    id: `${at}`,
    pattern: `${'*?b'.repeat(10)}${'a?'.repeat(60)}${at}*z`,
    actions: [],
  }))

  it('is bounded for a user, however many catastrophic globs they have', () => {
    const compiled = compileRuleset(rules({ content: own }))
    const took = cpuMs(() => expect(compiled.evaluate(event, alice).notify).toBe(true))
    expect(took).toBeLessThan(100)
  })

  it('leaves their other rules as they are', () => {
    const sender = { id: BOB, actions: ['notify', { set_tweak: 'sound', value: 'x' }] }
    const compiled = compileRuleset(rules({ content: own, sender: [sender] }))
    expect(compiled.evaluate(event, alice).sound).toBe('x')
  })
})
