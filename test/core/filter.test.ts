import { describe, expect, it } from 'vitest'
import { compileFields, projectFields } from '../../src/core/event-fields.ts'
import { compileEventFilter, compileFilter, MATCH_ALL, type RoomEventFilter } from '../../src/core/filter.ts'
import { readFilter, readRoomEventFilter } from '../../src/core/filter-reader.ts'
import type { JsonValue } from '../../src/core/json.ts'

const message = { type: 'm.room.message', sender: '@a:x.example', content: { body: 'hi' } }
const image = { type: 'm.room.message', sender: '@b:x.example', content: { url: 'mxc://x/1' } }
const topic = { type: 'm.room.topic', sender: '@a:x.example', content: { topic: 'x' } }
const typing = { type: 'm.typing', content: {} }
const EVENTS = { message, image, topic, typing }

describe('event filters', () => {
  it.each<[RoomEventFilter, (keyof typeof EVENTS)[]]>([
    [{}, ['message', 'image', 'topic', 'typing']],
    [{ types: ['m.room.message'] }, ['message', 'image']],
    [{ types: ['m.room.*'] }, ['message', 'image', 'topic']],
    [{ types: ['*message', 'm.typ*'] }, ['message', 'image', 'typing']],
    [{ types: ['*'] }, ['message', 'image', 'topic', 'typing']],
    [{ types: [] }, []],
    [{ types: ['m.room.messag?'] }, []],
    [{ not_types: ['m.room.*'] }, ['typing']],
    [{ not_types: [] }, ['message', 'image', 'topic', 'typing']],
    [{ types: ['m.room.message'], not_types: ['m.room.message'] }, []],
    [{ types: ['m.room.*'], not_types: ['*.topic'] }, ['message', 'image']],
    [{ senders: ['@a:x.example'] }, ['message', 'topic']],
    [{ senders: [] }, []],
    [{ not_senders: ['@a:x.example'] }, ['image', 'typing']],
    [{ senders: ['@a:x.example', '@b:x.example'], not_senders: ['@a:x.example'] }, ['image']],
    [{ contains_url: true }, ['image']],
    [{ contains_url: false }, ['message', 'topic', 'typing']],
    [{ types: ['m.room.message'], contains_url: false }, ['message']],
  ])('%j lets through %j', (filter, wanted) => {
    const { eventMatches } = compileEventFilter(filter)
    const matched = Object.entries(EVENTS).filter(([, event]) => eventMatches(event))
    expect(matched.map(([name]) => name)).toEqual(wanted)
  })

  it.each<[RoomEventFilter, string, boolean]>([
    [{}, '!a', true],
    [{ rooms: ['!a'] }, '!a', true],
    [{ rooms: ['!a'] }, '!b', false],
    [{ rooms: [] }, '!a', false],
    [{ not_rooms: ['!a'] }, '!a', false],
    [{ not_rooms: ['!a'] }, '!b', true],
    [{ rooms: ['!a'], not_rooms: ['!a'] }, '!a', false],
  ])('%j on room %s: %s', (filter, room, matches) => {
    expect(compileEventFilter(filter).roomMatches(room)).toBe(matches)
    expect(compileFilter({ room: filter }).room.roomMatches(room)).toBe(matches)
  })

  it('no filter costs nothing', () => {
    const { presence, accountData, room, eventFields } = compileFilter(undefined)
    expect([presence, accountData, room.state, room.timeline, room.ephemeral, room.accountData]).toEqual(
      Array(6).fill(MATCH_ALL),
    )
    expect(eventFields).toBeUndefined()
  })

  it('one that only sets options still matches all', () => {
    const matcher = compileEventFilter({ limit: 5, lazy_load_members: true, not_rooms: [] })
    expect(matcher).toMatchObject({ matchesAll: true, limit: 5, lazyLoadMembers: true, includeRedundantMembers: false })
    expect(compileEventFilter({ not_rooms: ['!a'] }).matchesAll).toBe(false)
    expect(compileEventFilter({ types: [] }).matchesAll).toBe(false)
  })

  it('an empty list of fields is none at all', () => {
    expect(compileFilter({ event_fields: [] }).eventFields).toBeUndefined()
    expect(compileFilter({ event_fields: ['type'] }).eventFields).toEqual(new Map([['type', 'whole']]))
  })

  it('carries every option', () => {
    const filter = compileFilter({
      event_format: 'federation',
      room: {
        include_leave: true,
        state: { lazy_load_members: true, include_redundant_members: true },
        timeline: { unread_thread_notifications: true },
      },
    })
    expect(filter.eventFormat).toBe('federation')
    expect(filter.room.includeLeave).toBe(true)
    expect(filter.room.state).toMatchObject({ lazyLoadMembers: true, includeRedundantMembers: true })
    expect(filter.room.timeline.unreadThreadNotifications).toBe(true)
  })
})

describe('event fields', () => {
  const event = JSON.parse(
    '{"type":"t","content":{"body":"b","m.relates_to":{"rel_type":"r","event_id":"e"},"a\\\\b":1,"__proto__":{"x":1}},"unsigned":{"age":1}}',
  )
  it.each([
    [['type'], { type: 't' }],
    [['content.body'], { content: { body: 'b' } }],
    [['content.m\\.relates_to.rel_type'], { content: { 'm.relates_to': { rel_type: 'r' } } }],
    [['content.m.relates_to'], {}],
    [['content.a\\\\b'], { content: { 'a\\b': 1 } }],
    [['content.body.length', 'nothing', 'content.toString'], {}],
    [['unsigned.age', 'unsigned'], { unsigned: { age: 1 } }],
    [['unsigned', 'unsigned.age'], { unsigned: { age: 1 } }],
    [['type', 'content.body', 'unsigned.age'], { type: 't', content: { body: 'b' }, unsigned: { age: 1 } }],
  ])('%j', (paths, kept) => {
    expect(projectFields(event, compileFields(paths))).toEqual(kept)
  })

  it('keeps a key named __proto__ as a key', () => {
    const { content } = projectFields(event, compileFields(['content.__proto__.x']))
    expect(JSON.stringify(content)).toBe('{"__proto__":{"x":1}}')
  })

  it('leaves the event as it is', () => {
    const before = JSON.stringify(event)
    projectFields(event, compileFields(['content', 'content.body', 'type']))
    expect(JSON.stringify(event)).toBe(before)
  })
})

describe('filters as clients send them', () => {
  const FULL = {
    event_fields: ['type', 'content.body'],
    event_format: 'client',
    presence: { limit: 1, types: ['*'], not_types: [], senders: ['@a:x.example'], not_senders: [] },
    account_data: { not_types: ['*'] },
    room: {
      rooms: ['!a:x.example', `!${'h'.repeat(43)}`],
      not_rooms: [],
      include_leave: true,
      ephemeral: { types: [] },
      state: { lazy_load_members: true, include_redundant_members: true, contains_url: false },
      timeline: { limit: 0, unread_thread_notifications: true, related_by_rel_types: ['m.thread'] },
      account_data: { rooms: ['!a:x.example'] },
    },
    'org.example.later': { anything: 1 },
  }

  it('may have every field, and fields of other releases', () => {
    expect(readFilter(FULL)).toEqual({ allowed: true, filter: FULL })
    expect(readFilter({})).toEqual({ allowed: true, filter: {} })
  })

  it.each<[JsonValue, string, string]>([
    [[], 'M_BAD_JSON', 'The filter must be an object.'],
    [{ presence: 'all' }, 'M_BAD_JSON', 'presence must be an object.'],
    [{ room: { timeline: [] } }, 'M_BAD_JSON', 'room.timeline must be an object.'],
    [{ room: { timeline: { limit: '10' } } }, 'M_BAD_JSON', 'room.timeline.limit must be an integer.'],
    [{ room: { timeline: { limit: 1.5 } } }, 'M_BAD_JSON', 'room.timeline.limit must be an integer.'],
    [{ room: { timeline: { limit: -1 } } }, 'M_INVALID_PARAM', 'room.timeline.limit must be zero or more.'],
    [{ room: { state: { types: 'm.room.*' } } }, 'M_BAD_JSON', 'room.state.types must be a list of strings.'],
    [{ room: { state: { types: [{}] } } }, 'M_BAD_JSON', 'room.state.types must be a list of strings.'],
    [{ room: { not_rooms: ['#a:x.example'] } }, 'M_INVALID_PARAM', 'room.not_rooms must be a list of room ids.'],
    [{ presence: { senders: ['@bar;x.example'] } }, 'M_INVALID_PARAM', 'presence.senders must be a list of user ids.'],
    [{ event_format: 'other' }, 'M_BAD_JSON', 'event_format must be "client" or "federation".'],
    [{ event_fields: 'type' }, 'M_BAD_JSON', 'event_fields must be a list of strings.'],
    [{ room: { include_leave: 'yes' } }, 'M_BAD_JSON', 'room.include_leave must be true or false.'],
    [
      { account_data: { types: Array(101).fill('a*') } },
      'M_INVALID_PARAM',
      'account_data.types must be a list with at most 100 wildcards.',
    ],
  ])('%j is refused', (filter, errcode, reason) => {
    expect(readFilter(filter)).toEqual({ allowed: false, errcode, reason })
  })

  it('also alone, for one room', () => {
    expect(readRoomEventFilter({ lazy_load_members: true })).toEqual({
      allowed: true,
      filter: { lazy_load_members: true },
    })
    expect(readRoomEventFilter({ lazy_load_members: 1 })).toMatchObject({
      reason: 'lazy_load_members must be true or false.',
    })
  })
})
