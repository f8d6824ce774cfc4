import { isServerName, type ServerName } from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import type { RoomVersion } from '../room-version.ts'
import { signedEventText } from '../signing/event-hash.ts'
import { signatureOf } from '../signing/json-signature.ts'
import { verifySignature } from '../signing/key.ts'
import type { Pdu } from './format.ts'

/** The id of every policy server's key, which is in the room's state and nowhere else. */
export const POLICY_KEY_ID = 'ed25519:policy_server'
/** The state that names the policy server of a room, and what the proposal (MSC4284) called it. */
export const POLICY = 'm.room.policy'
export const UNSTABLE_POLICY = 'org.matrix.msc4284.policy'

/** The server that checks the events of a room before they are sent (client-server API, "Policy Servers"). */
export interface RoomPolicy {
  readonly via: ServerName
  /** Base64. */
  readonly publicKey: string
  /** Whether the room names it as the proposal did. */
  readonly isUnstable: boolean
}

/** The content of a state event of type `m.room.policy`; undefined if it names no policy server. */
export function policyIn({ via, public_keys }: JsonObject): RoomPolicy | undefined {
  return policyOf(via, isObject(public_keys) ? public_keys.ed25519 : undefined, false)
}

/** The content of a state event of type `org.matrix.msc4284.policy`. */
export function unstablePolicyIn({ via, public_key }: JsonObject): RoomPolicy | undefined {
  return policyOf(via, public_key, true)
}

function policyOf(
  via: JsonValue | undefined,
  publicKey: JsonValue | undefined,
  isUnstable: boolean,
): RoomPolicy | undefined {
  if (typeof via !== 'string' || !isServerName(via) || typeof publicKey !== 'string') return undefined
  return { via, publicKey, isUnstable }
}

/** Whether no policy server is asked about an event: those that name it, so that one that is away can be done without. */
export function isBeyondPolicy({ type, state_key }: { readonly type: string; readonly state_key?: string }): boolean {
  return state_key === '' && (type === POLICY || type === UNSTABLE_POLICY)
}

/** Whether the policy server of its room has signed an event. @param text what signatures of the event cover, if the caller has it */
export function isApproved(
  version: RoomVersion,
  pdu: Pdu,
  { via, publicKey }: RoomPolicy,
  text = signedEventText(version, pdu),
): boolean {
  const signature = signatureOf(pdu, via, POLICY_KEY_ID)
  return signature !== undefined && verifySignature(publicKey, text, signature)
}
