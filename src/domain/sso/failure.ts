import { type Errcode, ProtocolError } from '../../core/errors.ts'

/** Why a sign-in came to nothing, with the code and the status that programs see. */
const FAILURES = {
  /** No such provider is configured. */
  'unknown-provider': ['M_NOT_FOUND', 404],
  /** The address to go back to is missing, or is none that a browser may be sent to. */
  'bad-address': ['M_INVALID_PARAM', 400],
  /** Begun elsewhere or too long ago, or brought to its end already. */
  ended: ['M_UNKNOWN', 400],
  cancelled: ['M_FORBIDDEN', 403],
  unreachable: ['M_CONNECTION_FAILED', 502],
  /** What the provider answered does not hold. */
  refused: ['M_FORBIDDEN', 403],
  deactivated: ['M_USER_DEACTIVATED', 403],
  'no-account': ['M_FORBIDDEN', 403],
  /** As many accounts as the operator wants. */
  full: ['M_RESOURCE_LIMIT_EXCEEDED', 403],
  /** Somebody else than the one who is to prove who they are. */
  'other-person': ['M_FORBIDDEN', 403],
  /** The provider knew the person already and didn't ask again. */
  'not-again': ['M_FORBIDDEN', 403],
} as const satisfies Readonly<Record<string, readonly [Errcode, number]>>

export type FailureReason = keyof typeof FAILURES

/** A sign-in that came to nothing. A page says so in words. */
export class SignInFailure extends ProtocolError {
  readonly reason: FailureReason
  /** What can be tried again, where that may help. */
  readonly retry: SignInAttempt | undefined

  constructor(reason: FailureReason, retry?: SignInAttempt) {
    const [errcode, status] = FAILURES[reason]
    super(errcode, `Single sign-on: ${reason}.`, { status })
    this.name = 'SignInFailure'
    this.reason = reason
    this.retry = retry
  }
}

/** What a person signs in for: to give a client a token, or to complete a stage of user-interactive authentication. */
export type Purpose =
  | { readonly kind: 'login'; readonly returnTo: string }
  /** `session` is the one of user-interactive authentication. */
  | { readonly kind: 'proof'; readonly session: string }

export interface SignInAttempt {
  readonly providerId: string
  readonly purpose: Purpose
}
