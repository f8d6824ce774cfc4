import type { Errcode, ProtocolError } from '../core/errors.ts'
import type { Masquerade } from '../domain/appservices/callers.ts'
import type { AppserviceRequester } from '../domain/appservices/requester.ts'
import type { Claim, SignedRequest } from '../domain/federation/signed-requests.ts'
import type { Caller } from './caller.ts'
import type { Endpoint, RawReply, Reply } from './endpoint.ts'
import type { EndpointRequest } from './request.ts'

/** Error codes for the same mistake that differ between the client and the identity interface. */
export interface RoleCodes {
  readonly missingParam: Errcode
  /** A key of the body with a value of the wrong type. */
  readonly wrongType: Errcode
  readonly missingToken: Errcode
  readonly unknownToken: Errcode
}

export const CLIENT_CODES: RoleCodes = {
  missingParam: 'M_MISSING_PARAM',
  wrongType: 'M_BAD_JSON',
  missingToken: 'M_MISSING_TOKEN',
  unknownToken: 'M_UNKNOWN_TOKEN',
}

export const IDENTITY_CODES: RoleCodes = {
  missingParam: 'M_MISSING_PARAMS',
  wrongType: 'M_INVALID_PARAM',
  missingToken: 'M_UNAUTHORIZED',
  unknownToken: 'M_UNAUTHORIZED',
}

/** A wrong `hs_token` has a code of its own in the application service interface. */
export const HOSTED_CODES: RoleCodes = { ...CLIENT_CODES, unknownToken: 'M_FORBIDDEN' }

export const FEDERATION_CODES: RoleCodes = CLIENT_CODES

/** What all endpoints of a role share. */
export interface Role<By extends Caller = Caller> {
  readonly codes: RoleCodes
  readonly maxBodyBytes: number
  /** Sent with every answer, errors included, unless the answer has its own. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The holder of a token; undefined if it is unknown. `as` names the user that an application service acts for; `cookie` gives a cookie of
   * the request, which some tokens need beside them.
   */
  authenticate(
    token: string,
    as: () => Masquerade,
    cookie: (name: string) => string | undefined,
  ): By | undefined | Promise<By | undefined>
  /** The application service whose own token this is. */
  appserviceOf?(token: string): AppserviceRequester | undefined
  /** The server that claims to have signed a request, by its headers, in roles with signatures. Throws if none. Limits count by `addressKey`. */
  claim?(authorizations: readonly string[], addressKey: () => string): Promise<Claim>
  /** Verifies the signature of a claim. Throws if it is not valid. */
  confirm?(claim: Claim, request: SignedRequest, addressKey: () => string): By
  /** Checks further conditions for this endpoint. Throws if the caller does not satisfy them. */
  admit?(caller: By, endpoint: Endpoint): void | Promise<void>
  /** Runs the handler of an endpoint, for example in a queue. */
  perform?(endpoint: Endpoint, request: EndpointRequest, handle: () => Promise<Reply> | Reply): Promise<Reply> | Reply
  /** A page that tells a person in a browser of an error, in roles whose endpoints people open. */
  errorPage?(error: ProtocolError, acceptLanguage: string | undefined): RawReply
  /** Records that the holder of a token made a request. */
  seen?(caller: By, ip: () => string, userAgent: string | undefined): void
}
