import { isUserId, type ServerName, serverOf } from '../ids.ts'
import { isObject } from '../json.ts'
import type { RoomVersion } from '../room-version.ts'
import { signedEventText } from '../signing/event-hash.ts'
import { signatureOf } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import { joinAuthoriserOf } from './content.ts'
import type { Pdu } from './format.ts'

/**
 * The servers whose valid signatures an event needs, each once (server-server API, "Validating hashes and signatures on received
 * events"): the sender's server, except for third-party invites, which another server may send; in room versions 1 and 2 the server of the
 * event id; and the server of the user who authorised a restricted join (room version 8, rule 4.2).
 *
 * The invited user's server signs an invite when it receives it; later checks do not need that signature.
 */
export function requiredSigners(version: RoomVersion, pdu: Pdu): readonly ServerName[] {
  const servers = new Set<ServerName>()
  if (!isThirdPartyInvite(pdu)) servers.add(serverOf(pdu.sender))
  const idServer = version.eventIdServerMustSign ? serverOf(pdu.event_id as string) : undefined
  if (idServer !== undefined) servers.add(idServer)
  const authoriser = authoriserServer(version, pdu)
  if (authoriser !== undefined) servers.add(authoriser)
  return [...servers]
}

/** Rule 4.4.1 (5.4.1 in room version 12) checks the signature inside such an invite. */
function isThirdPartyInvite({ type, content }: Pdu): boolean {
  return type === 'm.room.member' && content.membership === 'invite' && content.third_party_invite !== undefined
}

/** The server of `join_authorised_via_users_server`; undefined if that is not a user id, which the rule then refuses. */
function authoriserServer(version: RoomVersion, { type, content }: Pdu): ServerName | undefined {
  const isAsked = version.restrictedJoins && type === 'm.room.member'
  const authoriser = isAsked ? joinAuthoriserOf(content) : undefined
  return isUserId(authoriser) ? serverOf(authoriser) : undefined
}

export interface VerifyKey {
  /** `ed25519:version` */
  readonly keyId: string
  /** Unpadded base64. */
  readonly publicKey: string
  /** Milliseconds. The source has already limited it to seven days ahead, or to the expiry of an old key. */
  readonly validUntilTs: number
}

/** The most key ids per server; an honest event has one or two signatures of a server. */
const MAX_KEY_IDS = 10
const MAX_KEY_ID_BYTES = 255

/** The ids of the ed25519 keys that `server` claims to have signed the event with: the first ten. */
export function signatureKeyIds(pdu: Pdu, server: ServerName): readonly string[] {
  const own = Object.hasOwn(pdu.signatures, server) ? pdu.signatures[server] : undefined
  return isObject(own) ? Object.keys(own).filter(isEd25519KeyId).slice(0, MAX_KEY_IDS) : []
}

function isEd25519KeyId(keyId: string): boolean {
  return keyId.startsWith('ed25519:') && Buffer.byteLength(keyId) <= MAX_KEY_ID_BYTES && !keyId.includes('\0')
}

/**
 * Whether `server` has validly signed the event: there is a signature by at least one of its valid keys, and all signatures by valid keys
 * are correct (server-server API, as above: all signatures of known keys that have not expired). Keys whose ids the event does not have
 * are ignored. From room version 5 on a key is valid for events up to its `validUntilTs`.
 *
 * @param keys of that server
 * @param signedText of the event, if the caller has it
 */
export function isSignedBy(
  version: RoomVersion,
  pdu: Pdu,
  server: ServerName,
  keys: readonly VerifyKey[],
  signedText: string = signedEventText(version, pdu),
): boolean {
  const decisive = decisiveSignatures(version, pdu, server, keys)
  const bytes = Buffer.from(signedText)
  return decisive.length > 0 && decisive.every((each) => verifySignature(each.publicKey, bytes, each.signature))
}

/** A signature to verify, and the public key for it, both base64. */
export interface ClaimedSignature {
  readonly publicKey: string
  readonly signature: string
}

/** The signatures that {@link isSignedBy} checks: there must be at least one, and all must be correct. */
export function decisiveSignatures(
  version: RoomVersion,
  pdu: Pdu,
  server: ServerName,
  keys: readonly VerifyKey[],
): readonly ClaimedSignature[] {
  const keyIds = new Set(signatureKeyIds(pdu, server))
  const counting = keys.filter((key) => keyIds.has(key.keyId) && countsFor(version, pdu, key))
  return counting.map(({ keyId, publicKey }) => ({ publicKey, signature: signatureOf(pdu, server, keyId)! }))
}

function countsFor(version: RoomVersion, pdu: Pdu, { validUntilTs }: VerifyKey): boolean {
  return !version.enforcesKeyValidity || validUntilTs >= pdu.origin_server_ts
}
