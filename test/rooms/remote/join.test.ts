import { describe, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import { checkFormat } from '../../../src/core/event/format.ts'
import { readPdu } from '../../../src/core/event/read.ts'
import { isSignedBy } from '../../../src/core/event/signers.ts'
import type { RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import { type JsonObject, readJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import { signEvent } from '../../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { buildFromTemplate, type RemoteMembership, withAuthoriser } from '../../../src/domain/rooms/remote/join.ts'

const OWN = 'here.test' as ServerName
const OTHER = 'there.test' as ServerName
const USER = `@user:${OWN}` as UserId
const HOST = `@host:${OTHER}` as UserId
const ownKey = signingKeyFromSeed('ed25519:own', Buffer.alloc(32, 1))
const otherKey = signingKeyFromSeed('ed25519:other', Buffer.alloc(32, 2))
const parts = {
  serverName: OWN,
  signingKey: ownKey,
  clock: { now: () => 1_700_000_000_000 },
  random: { bytes: (count: number) => Buffer.alloc(count, 7) },
}

function wantedIn(version: RoomVersion, membership: RemoteMembership['membership'] = 'join'): RemoteMembership {
  const roomId = (version.roomIdIsCreateHash ? `!${'r'.repeat(43)}` : `!room:${OTHER}`) as RoomId
  return { version, roomId, userId: USER, membership, content: { displayname: 'Me' } }
}

function templateFor({ version, roomId, membership }: RemoteMembership): JsonObject {
  const reference = (id: string) => (version.referencesCarryHashes ? [id, { sha256: 'hash' }] : id)
  return {
    type: 'm.room.member',
    room_id: roomId,
    sender: USER,
    state_key: USER,
    content: { membership },
    depth: 12,
    origin_server_ts: 5,
    prev_events: [reference('$prev:there.test')],
    auth_events: [reference('$auth:there.test')],
  }
}

const V12 = roomVersion('12')!
const wanted = wantedIn(V12)
const template = templateFor(wanted)

describe('the event that is built from a template of another server', () => {
  it.each(ROOM_VERSIONS.map((version) => [version.id, version] as const))(
    'is ours, in room version %s',
    (_, version) => {
      const asked = wantedIn(version)
      const given = templateFor(asked)
      const { pdu, json } = buildFromTemplate(parts, asked, given)
      expect(checkFormat(version, pdu)).toEqual({ allowed: true })
      expect(pdu).toMatchObject({
        content: { membership: 'join', displayname: 'Me' },
        origin_server_ts: 1_700_000_000_000,
        depth: 12,
        prev_events: given.prev_events,
        auth_events: given.auth_events,
      })
      const read = readPdu(version, readJson(json).value)
      expect(read).toMatchObject({ isRedacted: false })
      const key = { keyId: ownKey.keyId, publicKey: ownKey.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }
      expect(isSignedBy(version, pdu, OWN, [key])).toBe(true)
    },
  )

  it('has nothing of what the template says besides', () => {
    const { pdu } = buildFromTemplate(parts, wanted, {
      ...template,
      redacts: '$victim',
      origin: OTHER,
      hashes: { sha256: 'theirs' },
      signatures: { [OTHER]: { 'ed25519:x': 'theirs' } },
      unsigned: { invite_room_state: [] },
      extra: 1,
      content: { membership: 'join', displayname: 'You', third_party_invite: {}, is_admin: true },
    })
    expect(Object.keys(pdu).sort()).toEqual([
      'auth_events',
      'content',
      'depth',
      'hashes',
      'origin',
      'origin_server_ts',
      'prev_events',
      'room_id',
      'sender',
      'signatures',
      'state_key',
      'type',
    ])
    expect(pdu.origin).toBe(OWN)
    expect(pdu.content).toEqual({ membership: 'join', displayname: 'Me' })
    expect(Object.keys(pdu.signatures)).toEqual([OWN])
    expect(pdu.hashes.sha256).not.toBe('theirs')
  })

  it.each<[string, unknown]>([
    ['no object', []],
    ['another type', { ...template, type: 'm.room.power_levels' }],
    ['another room', { ...template, room_id: `!${'x'.repeat(43)}` }],
    ['another sender', { ...template, sender: HOST }],
    ['another state key', { ...template, state_key: HOST }],
    ['another membership', { ...template, content: { membership: 'ban' } }],
    ['no membership', { ...template, content: {} }],
    ['no content', { ...template, content: undefined }],
    ['no prev_events', { ...template, prev_events: undefined }],
    ['prev_events of an old version', { ...template, prev_events: [['$a:b', { sha256: 'c' }]] }],
    ['too many prev_events', { ...template, prev_events: Array.from({ length: 21 }, (_, at) => `$${at}`) }],
    ['auth_events that are no ids', { ...template, auth_events: [1] }],
    ['too many auth_events', { ...template, auth_events: Array.from({ length: 11 }, (_, at) => `$${at}`) }],
    ['a depth that is none', { ...template, depth: -1 }],
    ['a depth that is text', { ...template, depth: '1' }],
    [
      'an authoriser that is nobody',
      { ...template, content: { membership: 'join', join_authorised_via_users_server: 'x' } },
    ],
  ])('is not built from one with %s', (_, given) => {
    expect(() => buildFromTemplate(parts, wanted, JSON.parse(JSON.stringify(given)))).toThrow(ProtocolError)
  })

  it('is not built from references without their hashes, where these are wanted', () => {
    const asked = wantedIn(roomVersion('1')!)
    const given = { ...templateFor(asked), prev_events: ['$prev:there.test'] }
    expect(() => buildFromTemplate(parts, asked, given)).toThrow(ProtocolError)
  })
})

describe('the signature of the server that lets a user in', () => {
  const content = { membership: 'join', join_authorised_via_users_server: HOST }
  const built = buildFromTemplate(parts, wanted, { ...template, content })
  const keys = new Map([[otherKey.keyId, otherKey.publicKey]])

  it('is taken from what that server gives back, and nothing else', () => {
    const returned = { ...signEvent(V12, built.pdu, OTHER, otherKey), content: { membership: 'ban' } }
    const json = withAuthoriser(V12, built, returned, keys)
    const pdu = JSON.parse(json)
    expect(Object.keys(pdu.signatures).sort()).toEqual([OWN, OTHER])
    expect({ ...pdu, signatures: built.pdu.signatures }).toEqual(built.pdu)
  })

  it('has to be there and to be valid', () => {
    const forged = signEvent(V12, built.pdu, OTHER, ownKey)
    const ofAnother = signEvent(V12, { ...built.pdu, depth: 13 }, OTHER, otherKey)
    for (const returned of [undefined, null, {}, built.pdu, forged, ofAnother]) {
      expect(() => withAuthoriser(V12, built, returned, keys)).toThrow(ProtocolError)
    }
  })

  it('is not looked for where nobody has to let the user in', () => {
    const plain = buildFromTemplate(parts, wanted, template)
    expect(withAuthoriser(V12, plain, undefined, keys)).toBe(plain.json)
    const v7 = roomVersion('7')!
    const old = wantedIn(v7)
    const unneeded = buildFromTemplate(parts, old, { ...templateFor(old), content })
    expect(unneeded.pdu.content).toEqual({ membership: 'join', displayname: 'Me' })
    expect(withAuthoriser(v7, unneeded, undefined, keys)).toBe(unneeded.json)
  })
})
