import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import { ProtocolError } from '../../src/core/errors.ts'
import { EVERY_SERVER_WELCOME } from '../../src/core/server-policy.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { createAccountServices, createUserSettings } from '../../src/domain/accounts/account-services.ts'
import type { ExclusiveUsers } from '../../src/domain/accounts/exclusive-users.ts'
import { createOpenIdTokens } from '../../src/domain/accounts/openid-tokens.ts'
import { createSessions } from '../../src/domain/accounts/sessions.ts'
import { createOperators } from '../../src/domain/admin/operators.ts'
import { createAppserviceServices, openAppserviceBase } from '../../src/domain/appservices/appservice-services.ts'
import { NO_DEVICE_NEWS } from '../../src/domain/appservices/news.ts'
import { createCallServices } from '../../src/domain/calls/call-services.ts'
import { createContactServices } from '../../src/domain/contact/contact-services.ts'
import { createIdentityServers } from '../../src/domain/contact/identity-servers.ts'
import { createOwnKeys } from '../../src/domain/federation/own-keys.ts'
import {
  createInviteDeliveries,
  type InviteDeliveries,
  type OwnHomeserver,
} from '../../src/domain/identity/deliveries.ts'
import type { HomeserverCalls } from '../../src/domain/identity/homeserver-calls.ts'
import { createIdentityServices } from '../../src/domain/identity/identity-services.ts'
import type { IdentityKeyRing } from '../../src/domain/identity/keys.ts'
import { openMessenger } from '../../src/domain/identity/messenger.ts'
import type { OpenIdVerifier } from '../../src/domain/identity/openid-verifier.ts'
import { createCrossSigning } from '../../src/domain/keys/cross-signing.ts'
import { createDeviceLists } from '../../src/domain/keys/device-lists.ts'
import { createMetrics, type Metrics } from '../../src/domain/metrics.ts'
import { OPEN_GATE } from '../../src/domain/moderation/gate.ts'
import { createOauthServices } from '../../src/domain/oauth/oauth-services.ts'
import { loadPages } from '../../src/domain/pages.ts'
import { openPushRules } from '../../src/domain/push/rules.ts'
import { openRateLimitOverrides } from '../../src/domain/rate-limit-overrides.ts'
import { createRateLimits } from '../../src/domain/rate-limits.ts'
import { createRendezvous } from '../../src/domain/rendezvous/rendezvous.ts'
import type { IgnoredUsers } from '../../src/domain/rooms/read/ignored-users.ts'
import { type KeyRing, NOBODY } from '../../src/domain/rooms/receive/federation-queries.ts'
import type { Services } from '../../src/domain/services.ts'
import { createSingleSignOn } from '../../src/domain/sso/single-sign-on.ts'
import { createNotifier } from '../../src/domain/sync/notifier.ts'
import { createUserRooms } from '../../src/domain/sync/user-rooms.ts'
import { createProfileAccess } from '../../src/domain/user-directory/profile-access.ts'
import { createAppserviceClient } from '../../src/outbound/appservice.ts'
import { createGuardedClient } from '../../src/outbound/http.ts'
import { createIdentityClient, type Requests } from '../../src/outbound/identity.ts'
import type { ProfileFields } from '../../src/store/accounts/profiles.ts'
import type { Database } from '../../src/store/db/db.ts'
import { openLedger } from '../../src/store/db/ledger.ts'
import { createTestDatabase } from './database.ts'
import { NOBODY_ELSEWHERE } from './nobody-elsewhere.ts'
import { keptInMemory } from './server.ts'

/** The HTTP layer, the account services and those of the identity role on a real database and a real port, without rooms. */
export interface AccountServer {
  readonly baseUrl: string
  readonly db: Database
  readonly services: Services
  readonly metrics: Metrics
  /** Invitations on their way to homeservers; nothing here delivers them by itself. */
  readonly deliveries: InviteDeliveries
  /** Profile changes that rooms would have been told of. */
  readonly profileChanges: { readonly userId: string; readonly profile: ProfileFields }[]
  /** Moves the server's clock. */
  advance(ms: number): void
  /** Everything logged so far, at every level. */
  logged(): string
  close(): Promise<void>
}

/** Cheap hashes and no limits, unless a test asks for them. */
const VALUES = {
  passwords: { scrypt: { log2_cost: 4 } },
  rate_limits: { enabled: false },
  listen: { port: 0 },
  outbound: { allow_ranges: ['127.0.0.0/8'] },
}

const NO_OTHERS: OpenIdVerifier = {
  async subjectOf() {
    throw new ProtocolError('M_UNKNOWN', 'No other homeserver can be asked from here.', { status: 502 })
  },
}
const noServer = async () => ({ ok: false as const, kind: 'refused' as const, detail: 'no other servers here' })
const noRoom = async () => {
  throw new ProtocolError('M_FORBIDDEN', 'no rooms here')
}
const NO_CALLS: HomeserverCalls = {
  async call() {
    throw new Error('no other homeserver can be called from here')
  },
}

export interface AccountServerOptions {
  /** How other homeservers are asked about OpenID tokens. */
  readonly openIdVerifier?: OpenIdVerifier
  /** The long-term keys of the identity service; one of its own without them. */
  readonly keyRing?: IdentityKeyRing
  /** Keys of other homeservers; none are known without them. */
  readonly serverKeys?: KeyRing
  /** How homeservers are told of invitations; others cannot be without, and there is no own one. */
  readonly homeservers?: HomeserverCalls
  readonly ownHomeserver?: OwnHomeserver
  /** How identity servers of others are asked; as any other server without. */
  readonly requests?: Requests
  /** Names that application services keep; none without. */
  readonly exclusiveUsers?: ExclusiveUsers
}

/** No account server knows rooms, in which somebody could be ignored. */
const IGNORING_NOBODY: IgnoredUsers = {
  of: () => undefined,
  ignores: () => false,
  changed: () => {},
  onChange: () => {},
  readAgain: async () => {},
}

export async function startAccountServer(
  values: object = {},
  options: AccountServerOptions = {},
): Promise<AccountServer> {
  let running: AccountServer | undefined = await open(values, options)
  return {
    baseUrl: running.baseUrl,
    get db() {
      return running!.db
    },
    get services() {
      return running!.services
    },
    get metrics() {
      return running!.metrics
    },
    get deliveries() {
      return running!.deliveries
    },
    get profileChanges() {
      return running!.profileChanges
    },
    advance: (ms) => running!.advance(ms),
    logged: () => running!.logged(),
    async close() {
      await running!.close()
      // A test file's variables stay as long as its process, and a closed server is heavy.
      running = undefined
    },
  }
}

async function open(values: object, options: AccountServerOptions): Promise<AccountServer> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-test-'))
  const config: Config = loadConfig({ values: { ...VALUES, ...values }, directory }).config
  const database = await createTestDatabase()
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  let ahead = 0
  const clock = { now: () => Date.now() + ahead }
  const metrics = createMetrics({ version: 'test', node: process.version })
  const profileChanges: AccountServer['profileChanges'] = []
  const rateLimitOverrides = await openRateLimitOverrides({ db: database.db, clock })
  const rateLimits = createRateLimits({ config, clock, overrides: rateLimitOverrides })
  const ledger = await openLedger(database.db)
  const client = await createGuardedClient({ config, log })
  const userRooms = createUserRooms({ db: database.db, budget: new ByteBudget(1_000_000) })
  const deviceLists = createDeviceLists({
    db: database.db,
    remote: NOBODY_ELSEWHERE,
    services: NO_DEVICE_NEWS,
    ledger,
    notifier: createNotifier(),
    userRooms,
  })
  const random = { bytes: randomBytes }
  const signingKey = signingKeyFromSeed('ed25519:test', randomBytes(32))
  const messenger = await openMessenger({ config, clock, metrics: metrics.identity, log, client })
  const identity = createIdentityServices({
    config,
    db: database.db,
    clock,
    random,
    openIdTokens: createOpenIdTokens({ db: database.db, clock, random }),
    openIdVerifier: options.openIdVerifier ?? NO_OTHERS,
    keyRing: options.keyRing ?? { current: signingKeyFromSeed('ed25519:0', randomBytes(32)), old: [] },
    messenger,
    serverKeys: options.serverKeys ?? NOBODY,
    metrics: metrics.identity,
    log,
  })
  const deliveries = createInviteDeliveries({
    config,
    db: database.db,
    clock,
    keys: identity.keys,
    homeservers: options.homeservers ?? NO_CALLS,
    ownHomeserver: options.ownHomeserver,
    due: identity.dueDeliveries,
    metrics: metrics.identity,
    log,
  })
  const identityClient = createIdentityClient(options.requests ?? client, config.outbound.dialect)
  const identityServers = createIdentityServers({ config, identity, client: identityClient, signingKey, log })
  const contactDeps = { config, db: database.db, clock, random, messenger, identityServers, log }
  const contact = createContactServices(contactDeps)
  const appserviceClient = createAppserviceClient({ client, dialect: 'auto', now: clock.now })
  const sessions = createSessions({ db: database.db, clock })
  const outbound = { client, appservices: appserviceClient }
  const ownSigningKey = keptInMemory(signingKey)
  const base = {
    config,
    db: database.db,
    ledger,
    sessions,
    signingKey: ownSigningKey,
    clock,
    random,
    metrics,
    log,
    outbound,
  }
  const appserviceBase = await openAppserviceBase({ base })
  const budget = new ByteBudget(1_000_000)
  const threadFollowers = { threadOf: () => undefined }
  const pushRules = await openPushRules({ db: database.db, budget, ignoredUsers: IGNORING_NOBODY, threadFollowers })
  const settings = createUserSettings({
    base,
    roomBase: { pushRules, ignoredUsers: IGNORING_NOBODY },
    syncBase: { ledgerWaker: { wakeUsers: () => {} } },
  })
  const accounts = createAccountServices({
    base,
    settings,
    syncBase: { deviceLists, profileNews: { changed: () => {} } },
    roomBase: { erasedUsers: { add: () => {}, remove: () => {} } },
    rooms: {
      moderation: { gate: OPEN_GATE },
      acting: {
        rooms: { leave: async () => {} },
        profileEvents: { profileChanged: async (userId, profile) => void profileChanges.push({ userId, profile }) },
      },
      reading: { threadSubscriptions: { onSubscribed: () => {} } },
      position: () => 0,
    },
    appserviceBase: { ...appserviceBase, exclusive: options.exclusiveUsers ?? appserviceBase.exclusive },
    addresses: { identity, contact },
    keys: { crossSigning: createCrossSigning({ clock, db: database.db, deviceLists }) },
    sending: {
      askProfile: async () => {
        throw new ProtocolError('M_NOT_FOUND', 'no other servers here')
      },
    },
  })
  const appservices = await createAppserviceServices({
    base,
    appserviceBase,
    eventsOut: { heard: () => {} },
    roomBase: { registry: { get: async () => undefined } },
    accounts,
  })
  const singleSignOn = createSingleSignOn({ base, accounts })
  const oauth = createOauthServices({ base, accounts })
  const ownKeys = createOwnKeys({ config, clock, signingKey: ownSigningKey })
  const calls = createCallServices({
    base: {
      ...base,
      policy: EVERY_SERVER_WELCOME,
      rateLimits,
      outbound: { near: client, federation: { request: noServer, stream: noServer } },
    },
    accounts,
    roomBase: { registry: { get: async () => undefined } },
    rooms: { acting: { rooms: { send: noRoom, setState: noRoom } } },
  })
  const services = {
    ...accounts,
    admin: { operators: createOperators({ ...accounts, db: database.db, clock }) },
    appservices,
    ...contact.services,
    singleSignOn,
    oauth,
    identity,
    ownKeys,
    config,
    clock,
    version: '0.0.0-test',
    pages: await loadPages(config),
    rateLimitOverrides,
    rateLimits,
    rendezvous: createRendezvous({ clock, random }),
    calls,
    delayedEvents: calls.delayedEvents,
    profileAccess: createProfileAccess({ config, rooms: { mustShareRoom: async () => {} } }),
  } as unknown as Services
  const { app } = buildApp({ services, metrics, log })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    baseUrl: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    db: database.db,
    services,
    metrics,
    deliveries,
    profileChanges,
    advance(ms) {
      ahead += ms
    },
    logged: () => lines.join(''),
    async close() {
      await app.close()
      messenger.close()
      await client.close()
      await accounts.sessions.close()
      await accounts.passwords.close()
      await database.drop()
      await rm(directory, { recursive: true })
    },
  }
}
