import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import { signJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { cpuMs } from '../../support/slowness.ts'
import { ALICE, BOB, CAROL, joinRule, member, powerLevels, roomOf, type TestRoom, versions } from './room.ts'

const KEY = signingKeyFromSeed('ed25519:0', Buffer.alloc(32, 1))
const OTHER = signingKeyFromSeed('ed25519:0', Buffer.alloc(32, 2))
const SIGNED = signJson({ mxid: ALICE, token: 'abc' }, 'identity.example', KEY)

/** Bob, who has not the power to invite by id any more, has invited someone by e-mail. */
function invitedBy(id: string, content: JsonObject = { public_key: KEY.publicKey }): TestRoom {
  return roomOf(id)
    .set(joinRule('invite'))
    .set(powerLevels({ invite: 50 }))
    .set(member(BOB, 'join'))
    .set({ type: 'm.room.third_party_invite', sender: BOB, state_key: 'abc', content })
}

function judge(room: TestRoom, signed: JsonValue | undefined, target = ALICE, sender = BOB): boolean {
  const invite = signed === undefined ? {} : { signed }
  return room.judge(member(target, 'invite', sender, { third_party_invite: { display_name: 'a', ...invite } })).allowed
}

describe('5.4.1: third-party invites', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = invitedBy(id)
    expect(judge(room, SIGNED)).toBe(true)
    // 2, 3. Signed for a user and a token
    expect(judge(room, undefined)).toBe(false)
    for (const odd of [null, 'x', [], {}, { mxid: ALICE }, { token: 'abc' }, { ...SIGNED, mxid: 1 }] as JsonValue[]) {
      expect(judge(room, odd)).toBe(false)
    }
    for (const odd of [null, 'x', []]) {
      expect(room.judge(member(ALICE, 'invite', BOB, { third_party_invite: odd })).allowed).toBe(false)
    }
    // 4. For this user
    expect(judge(room, SIGNED, CAROL)).toBe(false)
    // 5. With a token of the room
    expect(judge(room, signJson({ mxid: ALICE, token: 'xyz' }, 'identity.example', KEY))).toBe(false)
    // 6. By the one who invited
    expect(judge(room.set(member(CAROL, 'join')), SIGNED, ALICE, CAROL)).toBe(false)
    // 8. With a valid signature
    expect(judge(room, signJson({ mxid: ALICE, token: 'abc' }, 'identity.example', OTHER))).toBe(false)
    expect(judge(room, { ...SIGNED, extra: 1 })).toBe(false)
    for (const signatures of [
      null,
      {},
      [],
      { x: null },
      { x: { 'ed25519:0': 7 } },
      { x: { 'ed25519:0': 'no' } },
    ] as JsonValue[]) {
      expect(judge(room, { mxid: ALICE, token: 'abc', signatures })).toBe(false)
    }
    // 1. Not banned
    expect(judge(room.set(member(ALICE, 'ban')), SIGNED)).toBe(false)
  })

  it('7: the key may be one of a list', () => {
    const listed = (public_keys: JsonValue) =>
      judge(invitedBy('11', { public_key: OTHER.publicKey, public_keys }), SIGNED)
    expect(
      listed([{ public_key: OTHER.publicKey }, { public_key: KEY.publicKey, key_validity_url: 'https://x' }]),
    ).toBe(true)
    expect(listed([{ public_key: OTHER.publicKey }])).toBe(false)
    expect(listed([KEY.publicKey, null, 7, {}])).toBe(false)
    expect(listed('x')).toBe(false)
  })

  it('7: other algorithms are passed over', () => {
    const { signatures, ...rest } = SIGNED
    const signature = signatures['identity.example']!['ed25519:0']!
    expect(judge(invitedBy('11'), { ...rest, signatures: { 'identity.example': { 'rsa:0': signature } } })).toBe(false)
  })

  it('many keys and signatures are not all tried', () => {
    const keys = Array.from({ length: 900 }, (_, at) => ({
      public_key: signingKeyFromSeed('ed25519:0', Buffer.alloc(32, at % 200)).publicKey,
    }))
    const signature = OTHER.sign('something else')
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`ed25519:${at}`, signature]))
    const { signatures: _, ...rest } = SIGNED
    const took = cpuMs(() =>
      expect(judge(invitedBy('11', { public_keys: keys }), { ...rest, signatures: { x: many } })).toBe(false),
    )
    expect(took).toBeLessThan(300)
  })
})
