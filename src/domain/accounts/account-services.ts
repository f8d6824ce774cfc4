import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock, Random } from '../clock.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { IdentityAccounts } from '../identity/accounts.ts'
import type { CrossSigning } from '../keys/cross-signing.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import { type AccountData, createAccountData, type Waker } from './account-data.ts'
import { CAPTCHA_STAGE, captchaStage } from './captcha.ts'
import { createDeactivation, type Deactivation } from './deactivation.ts'
import { createDevices, type Devices } from './devices.ts'
import type { ExclusiveUsers } from './exclusive-users.ts'
import { createFilters, type Filters } from './filters.ts'
import { createInteractiveAuth, type InteractiveAuth, outOfBand, type UiaStage } from './interactive-auth.ts'
import { createLoginTokens, type LoginTokens } from './login-tokens.ts'
import { createLogins, type Logins } from './logins.ts'
import { createOpenIdTokens, type OpenIdTokens } from './openid-tokens.ts'
import { createPasswordChanges, type PasswordChanges } from './password-changes.ts'
import { createPasswords, type Passwords } from './passwords.ts'
import { createProfiles, type ProfileListener, type Profiles } from './profiles.ts'
import { createRegistration, type Registration } from './registration.ts'
import { createRegistrationTerms, type RegistrationTerms, TERMS_STAGE } from './registration-terms.ts'
import { createRegistrationTokens, type RegistrationTokens, TOKEN_STAGE } from './registration-tokens.ts'
import type { AskProfile } from './remote-profiles.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createTokenRenewal, type TokenRenewal } from './token-renewal.ts'

/** The services about accounts, as endpoints know them. */
export interface AccountServices {
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly registration: Registration
  readonly registrationTokens: RegistrationTokens
  readonly loginTokens: LoginTokens
  readonly registrationTerms: RegistrationTerms
  readonly logins: Logins
  readonly tokenRenewal: TokenRenewal
  readonly passwordChanges: PasswordChanges
  readonly deactivation: Deactivation
  readonly interactiveAuth: InteractiveAuth
  readonly devices: Devices
  readonly profiles: Profiles
  readonly accountData: AccountData
  readonly filters: Filters
  readonly openIdTokens: OpenIdTokens
}

/** Wires the services about accounts. Whoever makes them closes `sessions` and then `passwords`, before the database. */
export function createAccountServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly random: Random
  readonly rateLimits: RateLimits
  readonly bounds: BoundMetrics
  /** Woken after account data was written: the sync notifier. */
  readonly notifier: Waker
  /** Asks other servers. */
  readonly askProfile: AskProfile
  /** Whether an application service has just made a user. */
  askService(userId: UserId): Promise<boolean>
  /** Told of changed names and avatars: the rooms service. */
  readonly listener: ProfileListener
  readonly deviceLists: Pick<DeviceLists, 'change'>
  readonly crossSigning: Pick<CrossSigning, 'removeAll'>
  readonly contacts: Contacts
  /** The identity service's, which end with an account. */
  readonly identityAccounts: Pick<IdentityAccounts, 'removeAll'>
  /** Left by those who end their account. */
  readonly rooms: Pick<Rooms, 'leave'>
  readonly erasedUsers: Pick<ErasedUsers, 'add'>
  /** How far the stream of events is. */
  readonly position: () => number
  readonly log: Logger
  /** The stages that show an address. */
  readonly contactStages: Readonly<Record<string, UiaStage>>
  /** Names that application services keep for themselves. */
  readonly exclusiveUsers: ExclusiveUsers
  /** Calls the vendor of captchas. */
  readonly client: Pick<GuardedClient, 'request'>
}): AccountServices {
  const passwords = createPasswords(deps)
  const sessions = createSessions(deps)
  const registrationTokens = createRegistrationTokens(deps)
  const devices = createDevices({ ...deps, sessions })
  const loginTokens = createLoginTokens(deps)
  const registrationTerms = createRegistrationTerms(deps.config)
  const captcha = captchaStage(deps)
  const logins = createLogins({ ...deps, passwords, sessions, devices, loginTokens })
  const stages: Readonly<Record<string, UiaStage>> = {
    'm.login.dummy': { prove: async () => ({}) },
    'm.login.password': { prove: logins.provePassword },
    'm.login.sso': { prove: outOfBand('Sign in on the fallback page, and ask again with the session alone.') },
    ...(captcha && { [CAPTCHA_STAGE]: captcha }),
    [TERMS_STAGE]: registrationTerms.stage,
    [TOKEN_STAGE]: { prove: registrationTokens.prove },
    ...deps.contactStages,
  }
  return {
    passwords,
    sessions,
    registration: createRegistration({ ...deps, passwords, sessions, devices, registrationTokens, registrationTerms }),
    registrationTokens,
    loginTokens,
    registrationTerms,
    logins,
    tokenRenewal: createTokenRenewal({ ...deps, sessions }),
    passwordChanges: createPasswordChanges({ ...deps, passwords, logins, devices }),
    deactivation: createDeactivation({ ...deps, devices }),
    interactiveAuth: createInteractiveAuth({ ...deps, stages }),
    devices,
    profiles: createProfiles({ ...deps, serverName: deps.config.server_name }),
    accountData: createAccountData(deps),
    filters: createFilters(deps),
    openIdTokens: createOpenIdTokens(deps),
  }
}
