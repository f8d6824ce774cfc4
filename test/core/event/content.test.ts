import { describe, expect, it } from 'vitest'
import * as read from '../../../src/core/event/content.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { ALICE, CAROL, CREATOR, createPdu, versionOf } from '../auth/room.ts'

const event = (content: JsonObject) => ({ content })

const READERS: Readonly<Record<string, unknown>> = { ...read }

describe('tolerant readers', () => {
  it.each<[keyof typeof read, JsonObject, unknown]>([
    ['membershipOf', { membership: 'join' }, 'join'],
    ['membershipOf', { membership: 'dance' }, 'leave'],
    ['membershipOf', {}, 'leave'],
    ['displayNameOf', { displayname: 'Ann' }, 'Ann'],
    ['displayNameOf', { displayname: '' }, undefined],
    ['displayNameOf', { displayname: null }, undefined],
    ['avatarUrlOf', { avatar_url: 'mxc://a/b' }, 'mxc://a/b'],
    ['joinRuleOf', { join_rule: 'public' }, 'public'],
    ['joinRuleOf', { join_rule: 'later' }, 'later'],
    ['joinRuleOf', {}, 'invite'],
    ['joinRuleOf', { join_rule: 7 }, ''],
    [
      'allowedRoomsOf',
      {
        allow: [
          { type: 'm.room_membership', room_id: '!a:x.example' },
          { type: 'other', room_id: '!b:x.example' },
          'x',
          { type: 'm.room_membership', room_id: 7 },
        ],
      },
      ['!a:x.example'],
    ],
    ['allowedRoomsOf', { allow: {} }, []],
    ['historyVisibilityOf', { history_visibility: 'joined' }, 'joined'],
    ['historyVisibilityOf', { history_visibility: 'x' }, 'shared'],
    ['guestAccessOf', { guest_access: 'can_join' }, 'can_join'],
    ['guestAccessOf', { guest_access: true }, 'forbidden'],
    ['canonicalAliasOf', { alias: '#a:x.example' }, '#a:x.example'],
    ['canonicalAliasOf', { alias: null }, undefined],
    ['canonicalAliasOf', { alias: '' }, undefined],
    ['altAliasesOf', { alt_aliases: ['#a:x.example', 7, 'b'] }, ['#a:x.example']],
    ['altAliasesOf', {}, []],
    ['roomNameOf', { name: 'n' }, 'n'],
    ['roomNameOf', { name: ['n'] }, undefined],
    ['topicOf', { topic: 't' }, 't'],
    ['topicOf', { topic: 't', 'm.topic': { 'm.text': [{ mimetype: 'text/html', body: 'h' }, { body: 'p' }] } }, 'p'],
    ['topicOf', { topic: 't', 'm.topic': { 'm.text': [{ mimetype: 'text/plain', body: 'p' }] } }, 'p'],
    ['topicOf', { topic: 't', 'm.topic': { 'm.text': [7, { mimetype: 'text/html', body: 'h' }] } }, 't'],
    ['topicOf', { topic: 't', 'm.topic': { 'm.text': [{ body: 7 }] } }, 't'],
    ['topicOf', { topic: 't', 'm.topic': 'p' }, 't'],
    ['topicOf', { topic: '', 'm.topic': { 'm.text': [{ body: 'p' }] } }, undefined],
    ['avatarOf', { url: 'mxc://a/b' }, 'mxc://a/b'],
    ['encryptionAlgorithmOf', { algorithm: 'm.megolm.v1.aes-sha2' }, 'm.megolm.v1.aes-sha2'],
    ['replacementRoomOf', { replacement_room: '!a:x.example' }, '!a:x.example'],
    ['replacementRoomOf', { replacement_room: 'a' }, undefined],
    ['createContentOf', {}, { roomVersionId: '1', federates: true, type: undefined, predecessor: undefined }],
    [
      'createContentOf',
      {
        room_version: '6',
        'm.federate': false,
        type: 'm.space',
        predecessor: { room_id: '!a:x.example', event_id: '$e' },
      },
      { roomVersionId: '6', federates: false, type: 'm.space', predecessor: { roomId: '!a:x.example', eventId: '$e' } },
    ],
    [
      'createContentOf',
      { room_version: 6, type: 7, predecessor: { room_id: '!a:x.example' } },
      {
        roomVersionId: '1',
        federates: true,
        type: undefined,
        predecessor: { roomId: '!a:x.example', eventId: undefined },
      },
    ],
  ])('%s(%j) is %j', (name, content, expected) => {
    const reader = READERS[name] as (event: { content: JsonObject } | undefined) => unknown
    expect(reader(event(content))).toEqual(expected)
  })

  it('read nothing as the default', () => {
    expect(read.membershipOf(undefined)).toBe('leave')
    expect(read.joinRuleOf(undefined)).toBe('invite')
    expect(read.historyVisibilityOf(undefined)).toBe('shared')
    expect(read.guestAccessOf(undefined)).toBe('forbidden')
    expect(read.roomNameOf(undefined)).toBeUndefined()
    expect(read.createContentOf(undefined).roomVersionId).toBe('1')
  })

  it('find the target of a redaction where the version writes it', () => {
    const redaction = { redacts: '$old', content: { redacts: '$new' } }
    expect(read.redactsOf(versionOf('10'), redaction)).toBe('$old')
    expect(read.redactsOf(versionOf('11'), redaction)).toBe('$new')
    expect(read.redactsOf(versionOf('11'), { content: { redacts: 7 } })).toBeUndefined()
  })

  it('find who made a room', () => {
    const creators = (id: string, content: JsonObject) =>
      read.creatorsOf(versionOf(id), createPdu(versionOf(id), content))
    const content = { creator: ALICE, additional_creators: [CAROL, 7] }
    expect(creators('10', content)).toEqual([ALICE])
    expect(creators('10', { creator: 7 })).toEqual([])
    expect(creators('11', content)).toEqual([CREATOR])
    expect(creators('12', content)).toEqual([CREATOR, CAROL])
    expect(creators('12', { additional_creators: 'x' })).toEqual([CREATOR])
  })
})
