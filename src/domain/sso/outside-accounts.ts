import { type Errcode, ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { ExternalAccountRow } from '../../store/accounts/external-ids.ts'
import { MAX_SSO_SUBJECT_CHARS } from '../limits/sso.ts'
import { addressOf, displayNameOf } from './claims.ts'
import type { ExternalAccounts } from './external-accounts.ts'
import { SignInFailure } from './failure.ts'

/** A person whom a service of the operator vouches for. */
export interface OutsidePerson {
  /** What the service calls them, which never changes. */
  readonly subject: string
  readonly displayName: string | undefined
  readonly email: string | undefined
}

/** What operators allow: accounts that exist may be taken over, and new ones made. */
export interface OutsidePolicy {
  readonly allow_existing_users: boolean
  readonly allow_registration: boolean
}

/**
 * The account of a person: the one that they had before, else the one with their name, else a new one.
 *
 * @param source where they are known, which no provider of single sign-on is called
 * @throws ProtocolError `M_FORBIDDEN` for a person without an account; `M_USER_DEACTIVATED`, and what making an account throws
 */
export type OutsideAccounts = (source: string, person: OutsidePerson, policy: OutsidePolicy) => Promise<UserId>

const ABOUT_NAMES: ReadonlySet<Errcode> = new Set(['M_USER_IN_USE', 'M_INVALID_USERNAME', 'M_EXCLUSIVE'])

export function createOutsideAccounts(accounts: ExternalAccounts): OutsideAccounts {
  async function enter(source: string, person: OutsidePerson, policy: OutsidePolicy): Promise<ExternalAccountRow> {
    const { subject, displayName, email } = person
    const known = await accounts.find(source, subject)
    if (known !== undefined) return known
    const localpart = subject.toLowerCase()
    if (policy.allow_existing_users) {
      const existing = await accounts.adopt(source, subject, localpart)
      if (existing !== undefined) return existing
    }
    if (!policy.allow_registration) throw new SignInFailure('no-account')
    const described = { displayName: displayNameOf(displayName ?? ''), email: addressOf(email ?? '') }
    return accounts.create(source, { subject, suggestion: localpart, ...described }, localpart)
  }

  /** Of two first sign-ins at once, one makes the account, and the other finds it. */
  async function enterOnce(source: string, person: OutsidePerson, policy: OutsidePolicy): Promise<ExternalAccountRow> {
    try {
      return await enter(source, person, policy)
    } catch (error) {
      const made = await accounts.find(source, person.subject)
      if (made === undefined) throw error
      return made
    }
  }

  return async (source, person, policy) => {
    if (person.subject.length > MAX_SSO_SUBJECT_CHARS || person.subject.includes('\0')) throw noAccount()
    try {
      const { user_id, deactivated_at } = await enterOnce(source, person, policy)
      if (deactivated_at === null) return user_id
    } catch (error) {
      if (error instanceof SignInFailure && error.reason === 'no-account') throw noAccount()
      if (!(error instanceof ProtocolError) || !ABOUT_NAMES.has(error.errcode)) throw error
      throw new ProtocolError('M_FORBIDDEN', 'Your user name cannot be used on this server. Ask its administrators.')
    }
    throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
  }
}

function noAccount(): ProtocolError {
  return new ProtocolError('M_FORBIDDEN', 'You have no account on this server. Ask its administrators for one.')
}
