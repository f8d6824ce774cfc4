import { signedInviteOf } from '../event/content.ts'
import { ALLOWED, type Pdu, type Verdict } from '../event/format.ts'
import { isObject, type JsonObject } from '../json.ts'
import { signedText } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import { rejectBy } from './clauses.ts'
import { type AuthContext, membershipIn } from './context.ts'

/** An event could have hundreds of keys and signatures, and each pair costs a verification; real invites have one or two of each. */
const MAX_VERIFICATIONS = 100

/** 5.4.1. A third-party invite: an identity server has signed which user owns the invited address. */
export function authoriseThirdPartyInvite(context: AuthContext, target: string): Verdict {
  const { version, event, state } = context
  // 1. The target must not be banned.
  if (membershipIn(context, target) === 'ban') {
    return rejectBy(version, 'member.invite.third-party.banned', `${target} is banned from this room.`)
  }
  // 2. `signed` must be present.
  const invitation = event.content.third_party_invite
  if (!isObject(invitation) || invitation.signed === undefined) {
    return rejectBy(version, 'member.invite.third-party.unsigned', 'The third-party invite is not signed.')
  }
  // 3. `signed` must have a user id and a token.
  const signed = signedInviteOf(event.content)
  if (typeof signed?.mxid !== 'string' || typeof signed.token !== 'string') {
    const reason = 'The third-party invite is not signed for a user and a token.'
    return rejectBy(version, 'member.invite.third-party.incomplete', reason)
  }
  // 4. The signed user id must be the target.
  if (signed.mxid !== target) {
    const reason = `The third-party invite is signed for another user than ${target}.`
    return rejectBy(version, 'member.invite.third-party.other-user', reason)
  }
  return authoriseBearer(context, signed, state('m.room.third_party_invite', signed.token))
}

function authoriseBearer({ version, event }: AuthContext, signed: JsonObject, invite: Pdu | undefined): Verdict {
  // 5. The room must have an `m.room.third_party_invite` with that token.
  if (invite === undefined) {
    const reason = 'The room has no third-party invite with that token.'
    return rejectBy(version, 'member.invite.third-party.unknown-token', reason)
  }
  // 6. Its sender must be the sender of this event.
  if (invite.sender !== event.sender) {
    const reason = 'The third-party invite was made by another user.'
    return rejectBy(version, 'member.invite.third-party.other-sender', reason)
  }
  // 7. One of the keys in that event must have signed.
  if (vouchingKeys(signed, invite.content).next().done === false) return ALLOWED
  // 8.
  return rejectBy(version, 'member.invite.third-party.otherwise', 'The third-party invite has no valid signature.')
}

/** A key of a third-party invite, and the URL that tells whether it is still valid. */
export interface InviteKey {
  readonly publicKey: string
  readonly validityUrl: string | undefined
}

/** The keys of an `m.room.third_party_invite` that have signed `signed`. Each is verified when the iteration reaches it. */
export function* vouchingKeys(signed: JsonObject, invite: JsonObject): Generator<InviteKey> {
  const text = signedText(signed)
  const keys = keysOf(invite)
  const pairs = ed25519Signatures(signed).flatMap((signature) => keys.map((key) => ({ key, signature })))
  for (const { key, signature } of pairs.slice(0, MAX_VERIFICATIONS)) {
    if (verifySignature(key.publicKey, text, signature)) yield key
  }
}

/** 7.1 and 7.2: `public_key`, and the list in `public_keys`. */
function keysOf(invite: JsonObject): InviteKey[] {
  const listed = Array.isArray(invite.public_keys) ? invite.public_keys.filter(isObject) : []
  return [invite, ...listed].flatMap(({ public_key: publicKey, key_validity_url: url }) =>
    typeof publicKey === 'string' ? [{ publicKey, validityUrl: typeof url === 'string' ? url : undefined }] : [],
  )
}

function ed25519Signatures(signed: JsonObject): string[] {
  const servers = isObject(signed.signatures) ? Object.values(signed.signatures).filter(isObject) : []
  return servers
    .flatMap((byKeyId) => Object.entries(byKeyId))
    .filter(([keyId]) => keyId.startsWith('ed25519:'))
    .map(([, signature]) => signature)
    .filter((signature) => typeof signature === 'string')
}
