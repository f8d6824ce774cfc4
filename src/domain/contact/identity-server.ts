import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Medium } from '../../core/threepid.ts'
import type { SessionProof, ValidatedThreepid } from '../identity/session-proofs.ts'
import type { TokenRequest } from '../identity/sessions.ts'

/** An address as a person typed it, to which a token is sent. */
export type AddressWish =
  | { readonly medium: 'email'; readonly email: string }
  | { readonly medium: 'msisdn'; readonly country: string; readonly number: string }

/** What a client learns about a new session. */
export type BegunSession = {
  sid: string
  /** Where the client submits the code that it asks its user for. */
  submit_url?: string
  /** The number as it is stored, and as people write it. */
  msisdn?: string
  intl_fmt?: string
}

/** Servers of version 1 do not send the URL at which a key can be checked. */
export type PublicKeyOfInvite = { public_key: string; key_validity_url?: string }

/** The content of an `m.room.third_party_invite` event for an unbound address. */
export type ThirdPartyInvite = {
  token: string
  /** The address, masked for others. */
  display_name: string
  /** The identity server's long-term key first, then the one for this invitation. Never empty. */
  public_keys: PublicKeyOfInvite[]
}

export interface BoundThreepid {
  readonly medium: Medium
  readonly address: string
}

/** An address to look up: any medium, any spelling. */
export interface AskedThreepid {
  readonly medium: string
  readonly address: string
}

/** Whether an identity server has unbound, or does not support that for us. */
export type UnbindResult = 'success' | 'no-support'

/**
 * An identity server, as this homeserver uses it for its users, who bring the access tokens (identity service API). A refusal is a
 * `ProtocolError` with the server's code and status; 502 or 504 `M_UNKNOWN` if it does not answer.
 */
export interface IdentityServer {
  lookup(accessToken: string, threepid: AskedThreepid): Promise<UserId | undefined>
  /** @param invite the body of `store-invite` */
  storeInvite(accessToken: string, invite: JsonObject): Promise<ThirdPartyInvite>
  requestToken(accessToken: string, wish: AddressWish, request: TokenRequest): Promise<BegunSession>
  getValidated3pid(accessToken: string, proof: SessionProof): Promise<ValidatedThreepid>
  bind(accessToken: string, proof: SessionProof, userId: UserId): Promise<BoundThreepid>
  /** Unbinds by a request that the homeserver signs for its user. */
  unbind(threepid: BoundThreepid, userId: UserId): Promise<UnbindResult>
}
