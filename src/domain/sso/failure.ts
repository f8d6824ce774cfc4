import { type Errcode, ProtocolError } from '../../core/errors.ts'

/** Why a sign-in failed, with the error code and status for programs. */
const FAILURES = {
  /** No such provider is configured. */
  'unknown-provider': ['M_NOT_FOUND', 404],
  /** The return URL is missing, or a browser may not be sent to it. */
  'bad-address': ['M_INVALID_PARAM', 400],
  /** Begun in another browser, too long ago, or finished already. */
  ended: ['M_UNKNOWN', 400],
  cancelled: ['M_FORBIDDEN', 403],
  unreachable: ['M_CONNECTION_FAILED', 502],
  /** The provider's answer is invalid. */
  refused: ['M_FORBIDDEN', 403],
  deactivated: ['M_USER_DEACTIVATED', 403],
  'no-account': ['M_FORBIDDEN', 403],
  /** The server has as many accounts as the operator allows. */
  full: ['M_RESOURCE_LIMIT_EXCEEDED', 403],
  /** The person is not the one who must authenticate. */
  'other-person': ['M_FORBIDDEN', 403],
  /** The provider knew the person already and did not ask again. */
  'not-again': ['M_FORBIDDEN', 403],
} as const satisfies Readonly<Record<string, readonly [Errcode, number]>>

export type FailureReason = keyof typeof FAILURES

/** A failed sign-in. A page explains it in words. */
export class SignInFailure extends ProtocolError {
  readonly reason: FailureReason
  /** What the person may try again, if that may help. */
  readonly retry: SignInAttempt | undefined

  constructor(reason: FailureReason, retry?: SignInAttempt) {
    const [errcode, status] = FAILURES[reason]
    super(errcode, `Single sign-on: ${reason}.`, { status })
    this.name = 'SignInFailure'
    this.reason = reason
    this.retry = retry
  }
}

/** The purpose of a sign-in: to give a client a token, or to complete a stage of user-interactive authentication. */
export type Purpose =
  /** `isAgain`: the person is known, and has to prove again who they are. */
  | { readonly kind: 'login'; readonly returnTo: string; readonly isAgain?: boolean }
  /** `session` is that of the user-interactive authentication. */
  | { readonly kind: 'proof'; readonly session: string }

export interface SignInAttempt {
  readonly providerId: string
  readonly purpose: Purpose
}
