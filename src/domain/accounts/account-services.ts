import type { Medium } from '../../core/threepid.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { AppserviceQueries } from '../appservices/queries.ts'
import type { HomeserverBase } from '../base.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import { CONTACT_STAGES } from '../contact/contact-proofs.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { IdentityAccounts } from '../identity/accounts.ts'
import type { CrossSigning } from '../keys/cross-signing.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import type { Gate } from '../moderation/gate.ts'
import { createNewLoginNotes, type NewLoginNotes } from '../new-logins/notes.ts'
import { createKeyApprovals, type KeyApprovals } from '../oauth/key-approvals.ts'
import { createPushRuleEdits, type PushRuleEdits } from '../push/rule-edits.ts'
import type { PushRules } from '../push/rules.ts'
import type { ThreadSubscriptions } from '../push/thread-subscriptions.ts'
import { createPushers, type Pushers } from '../pushers/pushers.ts'
import { createUnsubscribing, type Unsubscribing } from '../pushers/unsubscribing.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { SettingsCarrier } from '../rooms/act/upgrade/successions.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import { JWT_STAGE, type JwtLogins } from '../sso/jwt-logins.ts'
import { createOutsideLogins } from '../sso/outside-logins.ts'
import type { ProfileNews } from '../sync/profile-news.ts'
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
import { createRoomSettings } from './room-settings.ts'
import type { Sessions } from './sessions.ts'
import { createTokenRenewal, type TokenRenewal } from './token-renewal.ts'

/** The services for accounts, as endpoints call them. */
export interface AccountServices {
  readonly passwords: Passwords
  readonly sessions: Sessions
  readonly registration: Registration
  readonly registrationTokens: RegistrationTokens
  readonly loginTokens: LoginTokens
  readonly registrationTerms: RegistrationTerms
  readonly logins: Logins
  readonly newLogins: NewLoginNotes
  readonly jwtLogins: JwtLogins
  readonly tokenRenewal: TokenRenewal
  readonly passwordChanges: PasswordChanges
  readonly deactivation: Deactivation
  readonly interactiveAuth: InteractiveAuth
  readonly keyApprovals: KeyApprovals
  readonly devices: Devices
  readonly profiles: Profiles
  readonly accountData: AccountData
  readonly pushRules: PushRules
  readonly pushRuleEdits: PushRuleEdits
  readonly filters: Filters
  readonly openIdTokens: OpenIdTokens
  readonly pushers: Pushers
  readonly unsubscribing: Unsubscribing
}

/** What users set, also for single rooms. It exists before rooms: they copy settings to a room that replaces another. */
export interface UserSettings {
  readonly accountData: AccountData
  readonly pushRules: PushRules
  readonly pushRuleEdits: PushRuleEdits
  readonly rooms: SettingsCarrier
}

export function createUserSettings(parts: {
  readonly base: Pick<HomeserverBase, 'db' | 'ledger' | 'log'> & { readonly metrics: { readonly bounds: BoundMetrics } }
  readonly roomBase: { readonly pushRules: PushRules; readonly ignoredUsers: IgnoredUsers }
  /** It is called after account data was written. */
  readonly syncBase: { readonly ledgerWaker: Waker }
}): UserSettings {
  const { db, ledger, metrics, log } = parts.base
  const { pushRules, ignoredUsers } = parts.roomBase
  const { ledgerWaker: notifier } = parts.syncBase
  const { bounds } = metrics
  const accountData = createAccountData({ db, ledger, notifier, pushRules, ignoredUsers, bounds })
  const pushRuleEdits = createPushRuleEdits({ ledger, notifier, pushRules, bounds, log })
  const failed = (err: unknown) => log.error({ err }, 'the lists of ignored users were not read again')
  ledger.onMissed(() => void ignoredUsers.readAgain().catch(failed))
  const rooms = createRoomSettings({ db, ledger, notifier, accountData, pushRules, pushRuleEdits })
  return { accountData, pushRules, pushRuleEdits, rooms }
}

export interface AccountParts {
  readonly base: Pick<
    HomeserverBase,
    'config' | 'db' | 'ledger' | 'sessions' | 'signingKey' | 'clock' | 'random' | 'log'
  > & {
    /** Calls the captcha vendor. */
    readonly outbound: { readonly client: Pick<GuardedClient, 'request'> }
  }
  readonly settings: UserSettings
  readonly syncBase: {
    readonly deviceLists: Pick<DeviceLists, 'change'>
    readonly profileNews: Pick<ProfileNews, 'changed'>
  }
  readonly roomBase: { readonly erasedUsers: Pick<ErasedUsers, 'add' | 'remove'> }
  /** A deactivated account leaves them, and they learn of changed names and avatars. */
  readonly rooms: {
    readonly moderation: { readonly gate: Pick<Gate, 'name' | 'register'> }
    readonly acting: { readonly rooms: Pick<Rooms, 'leave'>; readonly profileEvents: ProfileListener }
    /** Who follows a thread for the first time gets the rules about threads. */
    readonly reading: { readonly threadSubscriptions: Pick<ThreadSubscriptions, 'onSubscribed'> }
    /** The stream position of events. */
    position(): number
  }
  /** The user names that application services reserve, and whether a service has just made a user. */
  readonly appserviceBase: { readonly exclusive: ExclusiveUsers; readonly queries: Pick<AppserviceQueries, 'findUser'> }
  readonly addresses: {
    /** Deactivating an account here also ends its account there. */
    readonly identity: { readonly accounts: Pick<IdentityAccounts, 'removeAll'> }
    /** Addresses of accounts, and the stages that prove one. */
    readonly contact: {
      readonly services: { readonly contacts: Contacts }
      readonly stages: Readonly<Record<Medium, UiaStage>>
    }
  }
  readonly keys: { readonly crossSigning: Pick<CrossSigning, 'removeAll'> }
  /** Asks other servers. */
  readonly sending: { readonly askProfile: AskProfile }
}

/** Wires the services for accounts. The caller closes `passwords`, before the database. */
export function createAccountServices(parts: AccountParts): AccountServices {
  const { config, db, sessions, clock, random, log, outbound } = parts.base
  const { accountData, pushRules, pushRuleEdits } = parts.settings
  const { crossSigning } = parts.keys
  const { askProfile } = parts.sending
  const { identity, contact } = parts.addresses
  const { deviceLists } = parts.syncBase
  const { rooms, profileEvents } = parts.rooms.acting
  const { exclusive: exclusiveUsers, queries } = parts.appserviceBase
  const { contacts } = contact.services
  const serverName = config.server_name
  const passwords = createPasswords({ config, random })
  const registrationTokens = createRegistrationTokens({ db, clock, config })
  const devices = createDevices({ db, clock, sessions, deviceLists })
  const loginTokens = createLoginTokens({ db, clock, random, config })
  const newLogins = createNewLoginNotes({ config, clock, sessions })
  const registrationTerms = createRegistrationTerms(config)
  const captcha = captchaStage({ config, client: outbound.client })
  const registration = createRegistration({
    db,
    clock,
    random,
    passwords,
    sessions,
    devices,
    contacts,
    registrationTokens,
    registrationTerms,
    exclusiveUsers,
    gate: parts.rooms.moderation.gate,
    config,
  })
  const { ldapPasswords, jwtLogins } = createOutsideLogins({ config, db, clock, registration, log })
  const logins = createLogins({
    db,
    clock,
    random,
    passwords,
    sessions,
    devices,
    loginTokens,
    newLogins,
    outside: ldapPasswords,
    config,
  })
  parts.rooms.reading.threadSubscriptions.onSubscribed(pushRuleEdits.followThreads)
  const keyApprovals = createKeyApprovals({ db, clock, config })
  const stages: Readonly<Record<string, UiaStage>> = {
    'm.oauth': keyApprovals.stage,
    'org.matrix.cross_signing_reset': keyApprovals.stage,
    'm.login.dummy': { prove: async () => ({}) },
    'm.login.password': { prove: logins.provePassword },
    [JWT_STAGE]: { prove: jwtLogins.prove },
    'm.login.sso': { prove: outOfBand('Sign in on the fallback page, and ask again with the session alone.') },
    ...(captcha && { [CAPTCHA_STAGE]: captcha }),
    [TERMS_STAGE]: registrationTerms.stage,
    [TOKEN_STAGE]: { prove: registrationTokens.prove },
    [CONTACT_STAGES.email]: contact.stages.email,
    [CONTACT_STAGES.msisdn]: contact.stages.msisdn,
  }
  const pushers = createPushers({ db, clock, position: parts.rooms.position })
  return {
    passwords,
    sessions,
    registration,
    registrationTokens,
    loginTokens,
    registrationTerms,
    logins,
    newLogins,
    jwtLogins,
    tokenRenewal: createTokenRenewal({ db, clock, random, config, sessions }),
    passwordChanges: createPasswordChanges({ db, passwords, logins, devices, contacts }),
    deactivation: createDeactivation({
      db,
      clock,
      devices,
      crossSigning,
      contacts,
      identityAccounts: identity.accounts,
      erasedUsers: parts.roomBase.erasedUsers,
      position: parts.rooms.position,
      rooms,
      log,
    }),
    interactiveAuth: createInteractiveAuth({ db, clock, random, stages }),
    keyApprovals,
    devices,
    profiles: createProfiles({
      serverName,
      db,
      ledger: parts.base.ledger,
      news: parts.syncBase.profileNews,
      listener: profileEvents,
      askProfile,
      askService: queries.findUser,
    }),
    accountData,
    pushRules,
    pushRuleEdits,
    filters: createFilters({ db }),
    openIdTokens: createOpenIdTokens({ db, clock, random }),
    pushers,
    unsubscribing: createUnsubscribing({ db, signingKey: parts.base.signingKey, removed: pushers.removed }),
  }
}
