import { randomBytes } from 'node:crypto'
import type { ClientConfig } from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config/schema.ts'
import { serverOf, type UserId } from './core/ids.ts'
import { compileServerPolicy, type ServerPolicy } from './core/server-policy.ts'
import { createAccountServices } from './domain/accounts/account-services.ts'
import { createOpenIdTokens } from './domain/accounts/openid-tokens.ts'
import { createRemoteProfiles } from './domain/accounts/remote-profiles.ts'
import { adminChores, createAdminServices } from './domain/admin/admin-services.ts'
import {
  appserviceChores,
  createAppserviceServices,
  openAppserviceQueues,
  startAppservices,
} from './domain/appservices/appservice-services.ts'
import type { Clock, Random } from './domain/clock.ts'
import { contactChore, createContactServices } from './domain/contact/contact-services.ts'
import { createIdentityServers } from './domain/contact/identity-servers.ts'
import { createE2eServices } from './domain/e2e/e2e-services.ts'
import { createQuestions } from './domain/federation/ask-peers.ts'
import { createDeviceListNews } from './domain/federation/device-list-news.ts'
import { createFederationServices, federationChores } from './domain/federation/federation-services.ts'
import { createKeyRing } from './domain/federation/key-ring.ts'
import { createOutgoing } from './domain/federation/outgoing.ts'
import { createOwnKeys } from './domain/federation/own-keys.ts'
import type { OwnSigningKey } from './domain/federation/own-signing-key.ts'
import { createPresenceNews } from './domain/federation/presence-news.ts'
import { createRemoteKeys } from './domain/federation/remote-keys.ts'
import { createSentMessages } from './domain/federation/sent-messages.ts'
import { createIdentityServices, identityChores } from './domain/identity/identity-services.ts'
import type { IdentityKeyRing } from './domain/identity/keys.ts'
import { openMessenger } from './domain/identity/messenger.ts'
import { requirePolicyTexts } from './domain/identity/policies.ts'
import { createKeyServices } from './domain/keys/key-services.ts'
import { createMediaServices } from './domain/media/media-services.ts'
import type { Metrics } from './domain/metrics.ts'
import { openRateLimitOverrides } from './domain/rate-limit-overrides.ts'
import { createRateLimits } from './domain/rate-limits.ts'
import { createRoomServices } from './domain/rooms/room-services.ts'
import type { Services } from './domain/services.ts'
import { createSingleSignOn } from './domain/sso/single-sign-on.ts'
import { createUsers } from './domain/users.ts'
import { startIdentityWorkers } from './identity-role.ts'
import { createHomeserverCalls, createOpenIdVerifier } from './outbound/federation.ts'
import { createIdentityClient } from './outbound/identity.ts'
import { openOutbound } from './outbound/outbound.ts'
import { createPeers } from './outbound/peers.ts'
import { createKeyFetcher } from './outbound/server-keys.ts'
import { findAccount } from './store/accounts.ts'
import { openDatabase } from './store/db.ts'
import { openLedger } from './store/ledger.ts'
import { findProfile } from './store/profiles.ts'
import { startDeactivationRunner } from './workers/deactivation-runner.ts'
import { startJanitor } from './workers/janitor.ts'
import { startMediaSweeper } from './workers/media-sweeper.ts'
import { startRegistrationReloader } from './workers/registration-reloader.ts'
import { startRoomDeleter } from './workers/room-deleter.ts'

export interface ContextOptions {
  readonly config: Config
  readonly connection: ClientConfig
  readonly signingKey: OwnSigningKey
  readonly identityKeys: IdentityKeyRing
  /** By the configuration, where nobody gives another. */
  readonly policy?: ServerPolicy
  readonly version: string
  readonly metrics: Metrics
  readonly log: Logger
}

export interface Context {
  readonly services: Services
  readonly metrics: Metrics
  readonly log: Logger
  /** Whether the database answers. */
  ready(): Promise<boolean>
  /** Ends long polls, with 200: the server is stopping. */
  drain(): void
  close(): Promise<void>
}

/** Makes every store, service and client, and gives each what it needs. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const { config, log, metrics, signingKey, version } = options
  const clock: Clock = Date
  const random: Random = { bytes: randomBytes }
  await requirePolicyTexts(config)
  const { policy = compileServerPolicy(config.federation, config.server_name) } = options
  const outbound = await openOutbound({ config, signingKey, policy, version, now: clock.now, log })
  const messenger = await openMessenger({ config, clock, metrics: metrics.identity, log, client: outbound.client })
  const db = openDatabase({ connection: options.connection, poolSize: config.database.pool_size })
  const ledger = await openLedger(db)
  const appserviceQueues = await openAppserviceQueues({ config, db, clock, random, log, client: outbound.appservices })
  const peers = createPeers(outbound.federation)
  const fetcher = createKeyFetcher(outbound.federation)
  const serverKeys = createKeyRing({ config, db, clock, signingKey, fetcher, log })
  const users = createUsers({ db })
  const openIdTokens = createOpenIdTokens({ db, clock, random })
  const identity = createIdentityServices({
    config,
    db,
    clock,
    random,
    openIdTokens,
    openIdVerifier: createOpenIdVerifier(outbound.federation),
    keyRing: options.identityKeys,
    messenger,
    serverKeys,
    homeservers: createHomeserverCalls(outbound.federation),
    ownHomeserver: config.roles.includes('client')
      ? { serverName: config.server_name, bound: (body) => rooms.services.thirdPartyInvites.bound(body) }
      : undefined,
    metrics: metrics.identity,
    log,
  })
  const client = createIdentityClient(outbound.client, config.outbound.dialect)
  const identityServers = createIdentityServers({ config, identity, client, signingKey, log })
  const outgoing = createOutgoing({ ...{ db, peers, policy, clock, random, log }, serverName: config.server_name })
  const findUser = async (userId: UserId) => {
    const account = await findAccount(db, userId)
    return account && account.deactivated_at === null ? account.user_nid : undefined
  }
  const rooms = await createRoomServices({
    outgoing,
    identityServers,
    peers,
    config,
    db,
    ledger,
    users,
    signingKey,
    clock,
    random,
    metrics,
    log,
    appservices: appserviceQueues.ofRooms,
    questions: createQuestions({ peers, log }),
    keys: serverKeys,
    presenceNews: (registry, userRooms) => createPresenceNews({ db, clock, registry, userRooms, edu: outgoing.edu }),
    deviceListNews: (registry) =>
      createDeviceListNews({ serverName: config.server_name, db, clock, users, registry, outgoing }),
    profileOf: async (userId: UserId) => (await findProfile(db, userId)) ?? {},
    isKnownUser: async (userId: UserId) =>
      serverOf(userId) !== config.server_name ||
      (await findUser(userId)) !== undefined ||
      (await appserviceQueues.queries.findUser(userId)),
  })
  const contact = createContactServices({ config, db, clock, random, messenger, identityServers, log })
  const rateLimitOverrides = await openRateLimitOverrides({ db, clock })
  const rateLimits = createRateLimits({ config, clock, overrides: rateLimitOverrides })
  const { deviceLists, keyCounts } = rooms
  const keys = createKeyServices({
    ...{ config, db, ledger, clock, users, deviceLists },
    counts: keyCounts,
    remote: createRemoteKeys({ peers }),
  })
  const accounts = createAccountServices({
    config,
    db,
    ledger,
    clock,
    random,
    rateLimits,
    notifier: rooms.ledgerWaker,
    listener: rooms.profileEvents,
    askService: appserviceQueues.queries.findUser,
    askProfile: createRemoteProfiles({ peers, clock }),
    deviceLists,
    crossSigning: keys.crossSigning,
    contacts: contact.services.contacts,
    identityAccounts: identity.accounts,
    rooms: rooms.services.rooms,
    erasedUsers: rooms.erasedUsers,
    position: rooms.position,
    log,
    contactStages: contact.stages,
    exclusiveUsers: appserviceQueues.exclusive,
    client: outbound.client,
  })
  const appservices = await createAppserviceServices({
    queues: appserviceQueues,
    ...{ config, db, clock, random, log, registry: rooms.registry },
    ...accounts,
  })
  const admin = createAdminServices({
    ...rooms,
    exclusiveUsers: appserviceQueues.exclusive,
    appservices,
    ...{ config, db, clock, random, accounts, rooms: rooms.services.rooms, contacts: contact.services.contacts },
  })
  await admin.notices.prepare()
  const deactivationRunner = startDeactivationRunner({ deactivation: accounts.deactivation, log })
  const reloader = startRegistrationReloader({ config, appservices, log })
  const roomDeleter = startRoomDeleter({ deletions: rooms.deletions, log })
  const e2e = createE2eServices({
    ...rooms,
    config,
    db,
    ledger,
    clock,
    remote: createSentMessages({ clock, random, outgoing }),
  })
  const singleSignOn = createSingleSignOn({ ...accounts, config, db, clock, random, client: outbound.client, log })
  const media = createMediaServices({ ...outbound, config, db, clock, random, metrics, log })
  const mediaSweeper = startMediaSweeper({ sweep: media.sweep, log })
  const ownKeys = createOwnKeys({ config, clock, signingKey })
  const federation = createFederationServices({
    ...{ config, db, clock, log, policy, keys: serverKeys, outgoing, signingKey, users, ownKeys, fetcher },
    ...rooms,
    ...rooms.services,
    ...e2e,
    findUser,
  })
  await outgoing.start(rooms, rooms.position())
  await startAppservices(appserviceQueues, {
    ...{ config, appservices, events: rooms.events, position: rooms.position() },
    ...{ rooms: rooms.services.rooms, profiles: accounts.profiles },
  })
  const janitor = startJanitor({
    db,
    clock,
    log,
    chores: [...identityChores(config), contactChore(config), ...adminChores, ...federationChores, ...appserviceChores],
  })
  const closeIdentityWorkers = startIdentityWorkers(config, identity, log)
  metrics.watch({
    waitingSyncs: rooms.notifier.waiting,
    waitingTransactions: db.waiting,
    waitingPeerRequests: federation.queues.waiting,
    monthlyActiveUsers: admin.statistics.latestMonthlyActiveUsers,
  })
  return {
    services: {
      ...{ config, clock, version, rateLimits, rateLimitOverrides, ownKeys, identity, admin, federation, singleSignOn },
      appservices,
      media: media.services,
      ...contact.services,
      ...accounts,
      ...e2e,
      ...keys,
      ...rooms.services,
    },
    metrics,
    log,
    ready: () =>
      db.query('SELECT 1').then(
        () => true,
        () => false,
      ),
    drain: () => rooms.notifier.drain(),
    async close() {
      await closeIdentityWorkers()
      await deactivationRunner.close()
      await reloader.close()
      await roomDeleter.close()
      await janitor.close()
      await rooms.close()
      await outgoing.close()
      messenger.close()
      await mediaSweeper.close()
      await media.close()
      await outbound.close()
      await appserviceQueues.eventsOut.close()
      await accounts.sessions.close()
      await accounts.passwords.close()
      await db.close()
    },
  }
}
