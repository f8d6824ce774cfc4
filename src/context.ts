import { type Context, type ContextOptions, openBase } from './base.ts'
import { serverOf, type UserId } from './core/ids.ts'
import { createAccountServices } from './domain/accounts/account-services.ts'
import { createOpenIdTokens } from './domain/accounts/openid-tokens.ts'
import { createRemoteProfiles } from './domain/accounts/remote-profiles.ts'
import { createAdminServices } from './domain/admin/admin-services.ts'
import {
  createAppserviceServices,
  openAppserviceQueues,
  startAppservices,
} from './domain/appservices/appservice-services.ts'
import { createContactServices } from './domain/contact/contact-services.ts'
import { createIdentityServers } from './domain/contact/identity-servers.ts'
import { createE2eServices } from './domain/e2e/e2e-services.ts'
import { createFanOut } from './domain/fan-out.ts'
import { createFederationQueries } from './domain/federation/ask-peers.ts'
import { createDeviceListNews } from './domain/federation/device-list-news.ts'
import { createFederationServices } from './domain/federation/federation-services.ts'
import { createNewNeighbours } from './domain/federation/new-neighbours.ts'
import { createOutgoing } from './domain/federation/outgoing.ts'
import { createOwnKeys } from './domain/federation/own-keys.ts'
import { createPresenceNews } from './domain/federation/presence-news.ts'
import { createRemoteKeys } from './domain/federation/remote-keys.ts'
import { createSentMessages } from './domain/federation/sent-messages.ts'
import { createKeyServices } from './domain/keys/key-services.ts'
import { type LifecyclePart, startAll, stopAll, worker } from './domain/lifecycle.ts'
import { createMediaServices } from './domain/media/media-services.ts'
import { openRateLimitOverrides } from './domain/rate-limit-overrides.ts'
import { createRateLimits } from './domain/rate-limits.ts'
import { createRoomServices } from './domain/rooms/room-services.ts'
import { createSingleSignOn } from './domain/sso/single-sign-on.ts'
import { createUsers } from './domain/users.ts'
import { createIdentity, identityWorkers } from './identity-role.ts'
import { createIdentityClient } from './outbound/identity.ts'
import { createPeers } from './outbound/peers.ts'
import { findAccount } from './store/accounts/accounts.ts'
import { findProfile } from './store/accounts/profiles.ts'
import { openLedger } from './store/db/ledger.ts'
import { homeserverWorkers } from './workers/homeserver-workers.ts'
import { startMediaSweeper } from './workers/media-sweeper.ts'

/** Makes every store, service and client, and gives each what it needs. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const base = await openBase(options)
  const {
    config,
    clock,
    random,
    log,
    metrics,
    signingKey,
    version,
    policy,
    outbound,
    messenger,
    pages,
    db,
    fetcher,
    serverKeys,
  } = base
  const { bounds } = metrics
  const ledger = await openLedger(db)
  const appserviceQueues = await openAppserviceQueues({
    ...{ config, db, ledger, clock, random, log },
    client: outbound.appservices,
  })
  const peers = createPeers(outbound.federation)
  const users = createUsers({ db })
  const openIdTokens = createOpenIdTokens({ db, clock, random })
  const identity = createIdentity(base, {
    openIdTokens,
    ownHomeserver: config.roles.includes('client')
      ? { serverName: config.server_name, bound: (body) => rooms.services.thirdPartyInvites.bound(body) }
      : undefined,
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
    questions: createFederationQueries({ peers, log }),
    keys: serverKeys,
    memoryBytes: options.roomMemoryBytes,
    presenceNews: (registry, userRooms) => createPresenceNews({ db, clock, registry, userRooms, edu: outgoing.edu }),
    deviceListNews: (registry) =>
      createDeviceListNews({ serverName: config.server_name, db, clock, users, registry, outgoing }),
    newNeighbours: createNewNeighbours({ db, clock, outgoing }),
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
  const fanOut = createFanOut({
    ...rooms,
    ...{ db, clock, bounds },
    serverName: config.server_name,
    overrides: rateLimitOverrides,
  })
  const keys = createKeyServices({
    ...{ config, db, ledger, clock, users, deviceLists, fanOut },
    counts: keyCounts,
    remote: createRemoteKeys({ peers }),
    services: appserviceQueues.news,
  })
  const accounts = createAccountServices({
    config,
    db,
    ledger,
    clock,
    random,
    rateLimits,
    bounds,
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
  rooms.notifier.held.watch(accounts.sessions)
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
  const e2e = createE2eServices({
    ...rooms,
    config,
    db,
    ledger,
    clock,
    fanOut,
    remote: createSentMessages({ clock, random, outgoing }),
    services: appserviceQueues.news,
  })
  const singleSignOn = createSingleSignOn({ ...accounts, config, db, clock, random, client: outbound.client, log })
  const media = createMediaServices({ ...outbound, config, db, clock, random, metrics, log })
  const ownKeys = createOwnKeys({ config, clock, signingKey })
  const federation = createFederationServices({
    ...{
      config,
      db,
      clock,
      log,
      policy,
      keys: serverKeys,
      rateLimits,
      bounds,
      outgoing,
      signingKey,
      users,
      ownKeys,
      fetcher,
    },
    ...rooms,
    ...rooms.services,
    ...e2e,
    findUser,
  })
  const running: readonly LifecyclePart[] = [
    { name: 'database', stop: db.close },
    { name: 'passwords', stop: accounts.passwords.close },
    { name: 'sessions', stop: accounts.sessions.close },
    // After the client that it calls with: what is under way ends with that.
    { name: 'events to application services', stop: appserviceQueues.eventsOut.close },
    { name: 'calls to others', stop: outbound.close },
    { name: 'media', stop: media.close },
    worker('media sweeper', () => startMediaSweeper({ sweep: media.sweep, log })),
    { name: 'messenger', stop: () => messenger.close() },
    {
      name: 'events to other servers',
      async start() {
        const handedOn = await outgoing.start(rooms, rooms.position())
        if (handedOn !== undefined) await rooms.newNeighbours.takeUp(handedOn)
      },
      stop: outgoing.close,
    },
    { name: 'rooms', start: () => rooms.resync.start(federation.transactions.takeHeld), stop: rooms.close },
    {
      name: 'application services',
      start: () =>
        startAppservices(appserviceQueues, {
          ...{ config, appservices, position: rooms.position() },
          parts: { ...rooms, presenceOf: rooms.services.presence.of },
          ...{ rooms: rooms.services.rooms, profiles: accounts.profiles },
        }),
    },
    ...homeserverWorkers({
      ...{ config, db, clock, log, appservices },
      ...{ guests: rooms.guests, deletions: rooms.deletions, deactivation: accounts.deactivation },
    }),
    ...identityWorkers(config, identity, log),
  ]
  await startAll(running)
  metrics.watch({
    roomMemory: rooms.memoryUse,
    waitingSyncs: rooms.notifier.waiting,
    answerBytes: rooms.services.sync.bytesUnderWay,
    endedSyncs: () => rooms.notifier.held.ended,
    waitingTransactions: db.waiting,
    waitingPeerRequests: federation.queues.waiting,
    serversAsked: fanOut.asking,
    refusedLogins: accounts.logins.refusals,
    monthlyActiveUsers: admin.statistics.latestMonthlyActiveUsers,
    appserviceFailures: appserviceQueues.eventsOut.failures,
  })
  return {
    services: {
      ...{
        config,
        clock,
        version,
        pages,
        rateLimits,
        rateLimitOverrides,
        ownKeys,
        identity,
        admin,
        federation,
        singleSignOn,
      },
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
    ready: base.ready,
    listening: outgoing.open,
    drain: () => rooms.notifier.drain(),
    close: () => stopAll(running, log),
  }
}
