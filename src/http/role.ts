import type { Errcode } from '../core/errors.ts'
import type { Masquerade } from '../domain/appservices/callers.ts'
import type { AppserviceRequester } from '../domain/appservices/requester.ts'
import type { Claim, SignedRequest } from '../domain/federation/signed-requests.ts'
import type { Caller } from './caller.ts'
import type { Endpoint, Reply } from './endpoint.ts'
import type { EndpointRequest } from './request.ts'

/** The codes in which the client and the identity interface differ for the same mistake. */
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

/** A wrong `hs_token` is refused with what the seed's interface says. */
export const HOSTED_CODES: RoleCodes = { ...CLIENT_CODES, unknownToken: 'M_FORBIDDEN' }

export const FEDERATION_CODES: RoleCodes = CLIENT_CODES

/** What all endpoints of a role have in common. */
export interface Role<By extends Caller = Caller> {
  readonly codes: RoleCodes
  readonly maxBodyBytes: number
  /** Sent with every answer, errors included, unless the answer has its own. */
  readonly headers?: Readonly<Record<string, string>>
  /** Whose token this is; undefined when it is nobody's. An application service says as whom it calls. */
  authenticate(token: string, as: () => Masquerade): By | undefined | Promise<By | undefined>
  /** The application service whose own token this is. */
  appserviceOf?(token: string): AppserviceRequester | undefined
  /** Who may have signed a request, by its headers, in roles whose callers do. Throws when it is nobody. `addressKey` is what limits count by. */
  claim?(authorizations: readonly string[], addressKey: () => string): Promise<Claim>
  /** Who has. Throws when it is nobody. */
  confirm?(claim: Claim, request: SignedRequest, addressKey: () => string): By
  /** What else a caller must satisfy for this endpoint. Throws where that is not so. */
  admit?(caller: By, endpoint: Endpoint): void | Promise<void>
  /** Runs the handler of an endpoint, with what belongs around it. */
  perform?(endpoint: Endpoint, request: EndpointRequest, handle: () => Promise<Reply> | Reply): Promise<Reply> | Reply
  /** Notes that the holder of a token was here. */
  seen?(caller: By, ip: () => string, userAgent: string | undefined): void
}
