import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

const KEY = signingKeyFromSeed('ed25519:0', randomBytes(32))
const ONBIND = '/_matrix/federation/v1/3pid/onbind'

let house: House
let alice: Person
let bob: Person
let room: string
let token: string
let counter = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})

afterAll(() => house.close())

beforeEach(async () => {
  room = await alice.createRoom()
  token = `token-${counter++}`
  await inviteAddress()
})

/** What stands in the room once an address was invited. */
async function inviteAddress(content: object = {}) {
  const invite = { display_name: 'b...@e...', public_key: KEY.publicKey, ...content }
  await alice.setState(room, 'm.room.third_party_invite', invite, token)
}

const signed = (mxid: string, key = KEY) => signJson({ mxid, token }, 'id.test', key)

function bound(mxid: string, invite: object = {}, path = ONBIND, method = 'PUT') {
  const invites = [{ medium: 'email', address: 'b@e.test', mxid, room_id: room, sender: alice.userId, ...invite }]
  const entries = invites.map((each) => ({ signed: signed(mxid), ...each }))
  const body = { medium: 'email', address: 'b@e.test', mxid, invites: entries }
  return house.api.request(method, path, { body })
}

const invitationIn = async (person: Person) => (await person.sync()).rooms?.invite?.[room]
const membershipOf = async (person: Person) => {
  const { status, body } = await alice.ask('GET', inRoom(room, `/state/m.room.member/${person.userId}`))
  return status === 200 ? body.membership : 'none'
}
const outcome = ({ status, body }: { status: number; body: { errcode?: string } }) => [status, body.errcode]

describe('seed 3, F/v1/3pid/onbind', () => {
  const whole = () => {
    const signing = signed(bob.userId)
    const entry = { medium: 'email', address: 'b@e.test', mxid: bob.userId, room_id: room, sender: alice.userId }
    return { medium: 'email', address: 'b@e.test', mxid: bob.userId, invites: [{ ...entry, signed: signing }] }
  }
  const without = <T extends object>(value: T, key: string) =>
    Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
  const lacking: [name: string, body: () => object][] = [
    ...['medium', 'address', 'mxid', 'invites'].map((key): [string, () => object] => [
      key,
      () => without(whole(), key),
    ]),
    ...['medium', 'address', 'mxid', 'room_id', 'sender', 'signed'].map((key): [string, () => object] => [
      `invites.${key}`,
      () => ({ ...whole(), invites: [without(whole().invites[0]!, key)] }),
    ]),
    ...['mxid', 'token', 'signatures'].map((key): [string, () => object] => [
      `invites.signed.${key}`,
      () => ({ ...whole(), invites: [{ ...whole().invites[0]!, signed: without(whole().invites[0]!.signed, key) }] }),
    ]),
  ]

  test.each(lacking)('B15: onbind without %s is 400', async (_, body) => {
    const { status, body: answer } = await house.api.request('PUT', ONBIND, { body: body() })
    expect([status, ['M_BAD_JSON', 'M_INVALID_PARAM', 'M_MISSING_PARAM'].includes(answer.errcode)]).toEqual([400, true])
    expect(await membershipOf(bob)).toBe('none')
  })

  it('PUT: 200 {}, and the pending invitation becomes a member event with third_party_invite', async () => {
    await bob.call('PUT', `/profile/${encodeURIComponent(bob.userId)}/displayname`, { displayname: 'bob' })
    expect(await bound(bob.userId)).toEqual({ status: 200, body: {} })
    const { events } = (await invitationIn(bob)).invite_state
    const member = events.find((event: { state_key: string }) => event.state_key === bob.userId)
    expect(member).toMatchObject({
      sender: alice.userId,
      content: {
        membership: 'invite',
        displayname: 'bob',
        third_party_invite: { display_name: 'b...@e...', signed: { mxid: bob.userId, token } },
      },
    })
    await bob.join(room)
    expect(await membershipOf(bob)).toBe('join')
  })

  it('facts 31: POST, which identity services in use send, and the other root', async () => {
    expect(await bound(bob.userId, {}, ONBIND, 'POST')).toEqual({ status: 200, body: {} })
    expect(await membershipOf(bob)).toBe('invite')
    expect(await bound(bob.userId, {}, '/_proto/federation/v1/3pid/onbind')).toEqual({ status: 200, body: {} })
  })

  it('the invited user gets in though only those with power may invite', async () => {
    await alice.setState(room, 'm.room.power_levels', { invite: 100 })
    await bound(bob.userId)
    expect(await membershipOf(bob)).toBe('invite')
  })

  it('a key in public_keys counts as much', async () => {
    await inviteAddress({ public_key: 'A'.repeat(43), public_keys: [{ public_key: KEY.publicKey }] })
    await bound(bob.userId)
    expect(await membershipOf(bob)).toBe('invite')
  })

  it.each([
    [
      'a signature of another key',
      () => ({ signed: signed(bob.userId, signingKeyFromSeed('ed25519:0', randomBytes(32))) }),
    ],
    ['another sender than who invited', () => ({ sender: bob.userId })],
  ])('%s invites nobody, and is not sent again', async (_name, invite) => {
    expect(await bound(bob.userId, invite())).toEqual({ status: 200, body: {} })
    expect(await membershipOf(bob)).toBe('none')
  })

  it('an invitation that was taken back invites nobody', async () => {
    await alice.setState(room, 'm.room.third_party_invite', {}, token)
    expect(await bound(bob.userId)).toEqual({ status: 200, body: {} })
    expect(await membershipOf(bob)).toBe('none')
  })

  it('members stay members, and who was banned stays out', async () => {
    await alice.invite(room, bob)
    await bob.join(room)
    await bound(bob.userId)
    expect(await membershipOf(bob)).toBe('join')
    await alice.call('POST', inRoom(room, '/ban'), { user_id: bob.userId })
    expect(await bound(bob.userId)).toEqual({ status: 200, body: {} })
    expect(await membershipOf(bob)).toBe('ban')
  })

  it('who declined is not invited again by the same word', async () => {
    await bound(bob.userId)
    await bob.leave(room)
    expect(await bound(bob.userId)).toEqual({ status: 200, body: {} })
    expect(await membershipOf(bob)).toBe('leave')
  })

  it('who left before is invited', async () => {
    await alice.invite(room, bob)
    await bob.leave(room)
    token = `${token}-later`
    await inviteAddress()
    await bound(bob.userId)
    expect(await membershipOf(bob)).toBe('invite')
  })

  it('what cannot be done yet is to be sent again; all the rest is done', async () => {
    const unknown = signJson({ mxid: bob.userId, token: 'not-there-yet' }, 'id.test', KEY)
    const entry = { medium: 'email', address: 'b@e.test', mxid: bob.userId, room_id: room, sender: alice.userId }
    const body = {
      ...{ medium: 'email', address: 'b@e.test', mxid: bob.userId },
      invites: [
        { ...entry, signed: unknown },
        { ...entry, sender: '@far:away.test', signed: signed(bob.userId) },
        { ...entry, room_id: '!unknown:localhost', signed: signed(bob.userId) },
        { ...entry, signed: signed(bob.userId) },
      ],
    }
    const answer = await house.api.request('PUT', ONBIND, { body })
    expect(outcome(answer)).toEqual([503, 'M_UNKNOWN'])
    expect(answer.body.error).toContain('3 of 4')
    expect(await membershipOf(bob)).toBe('invite')
  })

  it('the same word ten times at once invites once', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => bound(bob.userId)))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=50'))
    const invites = chunk.filter((event: { state_key?: string }) => event.state_key === bob.userId)
    expect(invites).toHaveLength(1)
  })

  it.each([
    ['a user of another server', '@far:away.test', {}, [400, 'M_INVALID_PARAM']],
    ['a user who is not there', '@nobody:localhost', {}, [404, 'M_NOT_FOUND']],
    ['no user', 'bob', {}, [400, 'M_INVALID_PARAM']],
    ['no room', '@bob:localhost', { room_id: 7 }, [400, 'M_BAD_JSON']],
    ['no sender', '@bob:localhost', { sender: 'alice' }, [400, 'M_BAD_JSON']],
    ['nothing signed', '@bob:localhost', { signed: null }, [400, 'M_BAD_JSON']],
    ['something signed for another', '@bob:localhost', { signed: { mxid: '@alice:localhost' } }, [400, 'M_BAD_JSON']],
  ])('%s: refused', async (_name, mxid, invite, expected) => {
    expect(outcome(await bound(mxid, invite))).toEqual(expected)
  })

  it('more invitations than are taken at once: 400', async () => {
    const body = { mxid: bob.userId, invites: Array(501).fill({}) }
    expect(outcome(await house.api.request('PUT', ONBIND, { body }))).toEqual([400, 'M_INVALID_PARAM'])
    expect(outcome(await house.api.request('PUT', ONBIND, { body: { mxid: bob.userId } }))).toEqual([400, 'M_BAD_JSON'])
  })
})

describe('joining with `third_party_signed`', () => {
  const join = (person: Person, mxid: string, path = inRoom(room, '/join')) => {
    const word = signJson({ mxid, token, sender: alice.userId }, 'id.test', KEY)
    return person.ask('POST', path, { third_party_signed: word })
  }

  it('lets in who was invited by an address', async () => {
    expect(await join(bob, bob.userId)).toEqual({ status: 200, body: { room_id: room } })
    expect(await membershipOf(bob)).toBe('join')
  })

  it('by the other path too', async () => {
    expect(await join(bob, bob.userId, `/join/${encodeURIComponent(room)}`)).toMatchObject({ status: 200 })
  })

  it('403 with a word for somebody else, or none that holds', async () => {
    expect(outcome(await join(bob, alice.userId))).toEqual([403, 'M_FORBIDDEN'])
    token = 'another'
    expect(outcome(await join(bob, bob.userId))).toEqual([404, 'M_NOT_FOUND'])
    expect(await membershipOf(bob)).toBe('none')
  })
})
