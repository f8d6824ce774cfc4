import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Medium } from '../../core/threepid.ts'
import type { SessionProof, ValidatedThreepid } from '../identity/session-proofs.ts'
import type { TokenRequest } from '../identity/sessions.ts'

/** An address as somebody typed it, who is to be sent a token. */
export type AddressWish =
  | { readonly medium: 'email'; readonly email: string }
  | { readonly medium: 'msisdn'; readonly country: string; readonly number: string }

/** What a client is told about a session that was begun. */
export type BegunSession = {
  sid: string
  /** Where the client submits the code that it asks its user for. */
  submit_url?: string
  /** The number as it is stored, and as people write it. */
  msisdn?: string
  intl_fmt?: string
}

/** The address where a key can be checked is absent from servers of the first generation. */
export type PublicKeyOfInvite = { public_key: string; key_validity_url?: string }

/** What becomes of an address that nobody has bound: the makings of an `m.room.third_party_invite` event. */
export type ThirdPartyInvite = {
  token: string
  /** The address, made unreadable for others. */
  display_name: string
  /** The long-term key of the identity server first, then the one made for this invitation. Never empty. */
  public_keys: PublicKeyOfInvite[]
}

export interface BoundThreepid {
  readonly medium: Medium
  readonly address: string
}

/** What is asked for: any medium, any spelling of the address. */
export interface AskedThreepid {
  readonly medium: string
  readonly address: string
}

/** Whether an identity server has ended a binding, or is not one that does so for us. */
export type UnbindResult = 'success' | 'no-support'

/**
 * An identity server as this homeserver uses it for its users, who bring the access tokens (identity service API). Whatever the
 * server refuses is a `ProtocolError` with its code and status; 502 or 504 `M_UNKNOWN` is one that does not answer.
 */
export interface IdentityServer {
  lookup(accessToken: string, threepid: AskedThreepid): Promise<UserId | undefined>
  /** @param invite the body of `store-invite` */
  storeInvite(accessToken: string, invite: JsonObject): Promise<ThirdPartyInvite>
  requestToken(accessToken: string, wish: AddressWish, request: TokenRequest): Promise<BegunSession>
  getValidated3pid(accessToken: string, proof: SessionProof): Promise<ValidatedThreepid>
  bind(accessToken: string, proof: SessionProof, userId: UserId): Promise<BoundThreepid>
  /** By the homeserver's own right: it signs for its user. */
  unbind(threepid: BoundThreepid, userId: UserId): Promise<UnbindResult>
}
