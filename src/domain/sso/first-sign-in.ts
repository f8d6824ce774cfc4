import { type Errcode, ProtocolError } from '../../core/errors.ts'
import type { Identity } from '../../outbound/openid-provider.ts'
import type { ExternalAccountRow } from '../../store/accounts/external-ids.ts'
import { suggestedName } from './claims.ts'
import type { ExternalAccounts } from './external-accounts.ts'
import { SignInFailure } from './failure.ts'
import type { Person } from './flows.ts'
import type { Provider } from './providers.ts'

const ABOUT_NAMES: ReadonlySet<Errcode> = new Set(['M_USER_IN_USE', 'M_INVALID_USERNAME', 'M_EXCLUSIVE'])

/**
 * Handles a person whom a provider confirms and who has no account here: links the account of the same name if the operator allows that,
 * or makes a new one. Returns just the person if the name is taken or invalid.
 * @throws SignInFailure `no-account`, `deactivated`; ProviderError
 */
export async function firstSignIn(
  provider: Provider,
  identity: Identity,
  accounts: ExternalAccounts,
): Promise<{ readonly account: ExternalAccountRow } | { readonly person: Person }> {
  const { subject } = identity
  const newcomer = provider.newcomerOf(await identity.allClaims())
  const { localpart, displayName, email } = newcomer
  if (provider.takesExistingUsers) {
    const account = await accounts.adopt(provider.id, subject, localpart)
    if (account !== undefined) return { account }
  }
  if (!provider.makesAccounts) throw new SignInFailure('no-account')
  const person = { subject, suggestion: suggestedName(localpart), displayName, email }
  try {
    return { account: await accounts.create(provider.id, person, localpart) }
  } catch (error) {
    if (!(error instanceof ProtocolError) || !ABOUT_NAMES.has(error.errcode)) throw error
    // The person signed in twice at once: the other sign-in has made the account.
    const account = await accounts.find(provider.id, subject)
    return account === undefined ? { person } : { account }
  }
}
