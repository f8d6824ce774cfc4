import { describe, expect, it } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { compileCondition } from '../../../src/core/push/conditions.ts'
import { CALL_INVITE, evaluateDefaults, isNotifiable } from '../../../src/core/push/default-rules.ts'
import { standsOutFor } from '../../../src/core/push/highlights.ts'
import { NO_OWN_RULES, rulesetOf } from '../../../src/core/push/own-rules.ts'
import { type PushContext, type PushEvent, PushedEvent } from '../../../src/core/push/pushed-event.ts'

const ALICE = '@alice:here.example' as UserId
const BOB = '@bob:here.example' as UserId

const alice: PushContext = {
  userId: ALICE,
  displayName: 'Alice L.',
  memberCount: 10,
  senderPower: 0,
  powerToNotify: () => 50,
}

function event(type: string, content: JsonObject, more: { state_key?: string } = {}): PushEvent {
  return { type, sender: BOB, content, ...more }
}

function text(body: string, more: JsonObject = {}): PushEvent {
  return event('m.room.message', { msgtype: 'm.text', body, ...more })
}

const SILENT = { notify: false, highlight: false }
const NOTIFY = { notify: true, highlight: false }
const HIGHLIGHT = { notify: true, highlight: true }
const RINGS = { notify: true, highlight: false, sound: 'ring' }
const RTC_NOTIFICATION = 'org.matrix.msc4075.rtc.notification'
const EDIT = { 'm.relates_to': { rel_type: 'm.replace', event_id: '$x' } }

describe('the rule set that clients read (client-server API, predefined rules)', () => {
  const rules = rulesetOf(NO_OWN_RULES, ALICE)

  it('has every rule in its order', () => {
    const name = (id: string) => id.replace(/^.*?rule\./, '')
    expect(Object.entries(rules).map(([kind, list]) => [kind, ...list.map(({ rule_id }) => name(rule_id))])).toEqual([
      [
        'override',
        'master',
        'suppress_notices',
        'invite_for_me',
        'member_event',
        'rtc.invite_for_me',
        'is_user_mention',
        'rtc.invite_for_room',
        'is_room_mention',
        'tombstone',
        'reaction',
        'room.server_acl',
        'suppress_edits',
      ],
      ['content'],
      ['postcontent', 'unsubscribed_thread', 'subscribed_thread'],
      ['room'],
      ['sender'],
      ['underride', 'call', 'encrypted_room_one_to_one', 'room_one_to_one', 'message', 'encrypted'],
    ])
  })

  it('names the user where a rule is about them', () => {
    const rule = (id: string) => rules.override.find(({ rule_id }) => rule_id === `.m.rule.${id}`)
    expect(rule('invite_for_me')?.conditions).toContainEqual({ kind: 'event_match', key: 'state_key', pattern: ALICE })
    expect(rule('is_user_mention')?.conditions).toEqual([
      { kind: 'event_property_contains', key: 'content.m\\.mentions.user_ids', value: ALICE },
    ])
  })

  it('is JSON, with master and what is about threads alone disabled', () => {
    expect(JSON.parse(JSON.stringify(rules))).toEqual(rules)
    const disabled = Object.values(rules)
      .flat()
      .filter(({ enabled }) => !enabled)
    expect(disabled.map(({ rule_id }) => rule_id)).toEqual([
      '.m.rule.master',
      ...rules.postcontent.map(({ rule_id }) => rule_id),
    ])
  })
})

describe('what the default rules make of events', () => {
  it.each([
    ['a message', text('hi'), NOTIFY],
    ['an encrypted event', event('m.room.encrypted', {}), NOTIFY],
    ['a call', event('m.call.invite', {}), NOTIFY],
    ['her invitation to a group call', event(CALL_INVITE, { 'm.mentions': { user_ids: [ALICE] } }), RINGS],
    ["another's invitation to a group call", event(CALL_INVITE, { 'm.mentions': { user_ids: [BOB] } }), SILENT],
    ['one for all, of one without power', event(CALL_INVITE, { 'm.mentions': { room: true } }), SILENT],
    ['a ringing group call of today', event(RTC_NOTIFICATION, { 'm.mentions': { user_ids: [ALICE] } }), HIGHLIGHT],
    ['a notice', event('m.room.message', { msgtype: 'm.notice', body: 'alice' }), SILENT],
    ['an edit', text('hi', EDIT), SILENT],
    ['a reaction', event('m.reaction', {}), SILENT],
    ['a topic', event('m.room.topic', { topic: 'x' }, { state_key: '' }), SILENT],
    ['an ACL', event('m.room.server_acl', {}, { state_key: '' }), SILENT],
    ['a tombstone', event('m.room.tombstone', {}, { state_key: '' }), HIGHLIGHT],
    ['a tombstone that is no state', event('m.room.tombstone', {}), SILENT],
    ['her invite', event('m.room.member', { membership: 'invite' }, { state_key: ALICE }), NOTIFY],
    ["another's invite", event('m.room.member', { membership: 'invite' }, { state_key: BOB }), SILENT],
    ['a join', event('m.room.member', { membership: 'join' }, { state_key: ALICE }), SILENT],
    ['her id among the mentions', text('hi', { 'm.mentions': { user_ids: [BOB, ALICE] } }), HIGHLIGHT],
    ['her id among the mentions of an edit', text('hi', { ...EDIT, 'm.mentions': { user_ids: [ALICE] } }), HIGHLIGHT],
    ['her name beside mentions of others', text('Alice L. alice', { 'm.mentions': { user_ids: [BOB] } }), NOTIFY],
    ['her name beside empty mentions', text('Alice L. alice', { 'm.mentions': {} }), NOTIFY],
    ['her display name, which alone is no mention', text('hello ALICE L.!'), NOTIFY],
    ['her localpart, which alone is no mention', text('alice: look'), NOTIFY],
    ['@room of one without power', text('@room'), NOTIFY],
    ['a room mention of one without power', text('x', { 'm.mentions': { room: true } }), NOTIFY],
    ['a body that is no text', event('m.room.message', { body: 7 }), NOTIFY],
    ['mentions that are no object', text('alice', { 'm.mentions': 'alice' }), NOTIFY],
  ])('%s', (_name, sent, outcome) => {
    expect(evaluateDefaults(sent, alice)).toMatchObject(outcome)
  })

  it.each([
    ['@room, which alone is no mention', text('hey @room!'), NOTIFY],
    ['a room mention', text('x', { 'm.mentions': { room: true } }), HIGHLIGHT],
    ['an invitation of all to a group call', event(CALL_INVITE, { 'm.mentions': { room: true } }), RINGS],
    ['@room beside mentions', text('@room', { 'm.mentions': {} }), NOTIFY],
    ['"true" is not true', text('x', { 'm.mentions': { room: 'true' } }), NOTIFY],
  ])('of one with power: %s', (_name, sent, outcome) => {
    expect(evaluateDefaults(sent, { ...alice, senderPower: 50 })).toMatchObject(outcome)
  })

  it('one is never notified of what one sent', () => {
    expect(evaluateDefaults({ ...text('alice'), sender: ALICE }, alice)).toMatchObject(SILENT)
  })

  it('events count for everyone by what they are', () => {
    expect(isNotifiable(text('hi'))).toBe(true)
    expect(isNotifiable(event('m.room.encrypted', {}))).toBe(true)
    expect(isNotifiable(text('hi', EDIT))).toBe(false)
    expect(isNotifiable(event('m.room.message', { msgtype: 'm.notice' }))).toBe(false)
    expect(isNotifiable(event('m.reaction', {}))).toBe(false)
    expect(isNotifiable(event('m.room.name', {}, { state_key: '' }))).toBe(false)
  })
})

describe('conditions', () => {
  it.each([
    ['2', 2, true],
    ['2', 3, false],
    ['==2', 2, true],
    ['<2', 1, true],
    ['<2', 2, false],
    ['<=2', 2, true],
    ['>2', 3, true],
    ['>2', 2, false],
    ['>=2', 2, true],
    ['>=2', 1, false],
    ['=>2', 2, false],
    ['two', 2, false],
    ['', 0, false],
  ])('room_member_count %j with %d members: %s', (is, memberCount, holds) => {
    expect(
      compileCondition({ kind: 'room_member_count', is })(new PushedEvent(text('')), { ...alice, memberCount }),
    ).toBe(holds)
  })

  it('an unknown one never holds', () => {
    expect(compileCondition({ kind: 'moon_phase' } as never)(new PushedEvent(text('')), alice)).toBe(false)
  })
})

describe('highlights of a whole room', () => {
  const members = new Set(Array.from({ length: 1000 }, (_, index) => `@user${index}:here.example` as UserId))

  it('finds those listed, once', () => {
    const listed = ['@user7:here.example', '@user8:here.example', '@user7:here.example', '@else:here.example', 7]
    expect(standsOutFor(text('x', { 'm.mentions': { user_ids: listed } }), members, false)).toEqual({
      userIds: ['@user7:here.example', '@user8:here.example'],
      highlights: true,
    })
  })

  it('highlights everyone but the sender for a mention of the room', () => {
    const sent = { ...text('x', { 'm.mentions': { room: true } }), sender: '@user3:here.example' }
    expect(standsOutFor(sent, members, true).userIds).toHaveLength(999)
    expect(standsOutFor(sent, members, false).userIds).toEqual([])
  })
})
