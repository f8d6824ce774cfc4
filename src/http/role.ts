import type { Errcode } from '../core/errors.ts'
import type { Requester } from '../domain/accounts/requester.ts'

/** The codes in which the client and the identity interface differ for the same mistake. */
export interface RoleCodes {
  readonly missingParam: Errcode
  readonly missingToken: Errcode
  readonly unknownToken: Errcode
}

export const CLIENT_CODES: RoleCodes = {
  missingParam: 'M_MISSING_PARAM',
  missingToken: 'M_MISSING_TOKEN',
  unknownToken: 'M_UNKNOWN_TOKEN',
}

export const IDENTITY_CODES: RoleCodes = {
  missingParam: 'M_MISSING_PARAMS',
  missingToken: 'M_UNAUTHORIZED',
  unknownToken: 'M_UNAUTHORIZED',
}

/** What all endpoints of a role have in common. */
export interface Role {
  readonly codes: RoleCodes
  readonly maxBodyBytes: number
  /** Whose token this is; undefined when it is nobody's. */
  authenticate(token: string): Requester | undefined | Promise<Requester | undefined>
  /** Notes that the holder of a token was here. */
  seen?(requester: Requester, ip: () => string, userAgent: string | undefined): void
}
