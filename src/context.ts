import { type Context, type ContextOptions, openHomeserverBase } from './base.ts'
import { createAccountServices } from './domain/accounts/account-services.ts'
import { createLocalUsers } from './domain/accounts/local-users.ts'
import { createAdminServices } from './domain/admin/admin-services.ts'
import {
  createAppserviceEvents,
  createAppserviceServices,
  openAppserviceBase,
  startAppservices,
} from './domain/appservices/appservice-services.ts'
import { createE2eServices } from './domain/e2e/e2e-services.ts'
import { createFanOut } from './domain/fan-out.ts'
import { createFederationServices } from './domain/federation/federation-services.ts'
import { createNewNeighbours } from './domain/federation/new-neighbours.ts'
import { createSendingServices, startSending } from './domain/federation/sending-services.ts'
import { createKeyServices } from './domain/keys/key-services.ts'
import { type LifecyclePart, startAll, stopAll } from './domain/lifecycle.ts'
import { createMediaServices } from './domain/media/media-services.ts'
import { createPushServices } from './domain/pushing/push-services.ts'
import { openRoomBase } from './domain/rooms/room-base-services.ts'
import { createRoomServices } from './domain/rooms/room-services.ts'
import { createSingleSignOn } from './domain/sso/single-sign-on.ts'
import { createSyncBase } from './domain/sync/sync-base.ts'
import { endpointServices } from './endpoint-services.ts'
import { createAddressServices, identityWorkers } from './identity-role.ts'
import { homeserverWorkers } from './workers/homeserver-workers.ts'

/** Makes the areas, each from those before it, and lists what runs beside the requests. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const base = await openHomeserverBase(options)
  const { db, outbound, messenger, metrics, log } = base
  const roomBase = await openRoomBase({ base, memoryBytes: options.roomMemoryBytes })
  const sending = createSendingServices({ base, roomBase })
  const appserviceBase = await openAppserviceBase({ base })
  const { news: services } = appserviceBase
  const syncBase = createSyncBase({ base, roomBase, services, sending })
  const newNeighbours = createNewNeighbours({ base, roomBase, syncBase, sending })
  const { eventsOut, roomAppservices } = createAppserviceEvents({ base, appserviceBase, roomBase, syncBase })
  const localUsers = createLocalUsers({ base, appserviceBase })
  const addresses = createAddressServices(base)
  const rooms = await createRoomServices({
    base,
    localUsers,
    roomBase,
    syncBase,
    sending,
    newNeighbours,
    roomAppservices,
    addresses,
  })
  const fanOut = createFanOut({ base, roomBase })
  const keys = createKeyServices({ base, syncBase, remote: sending.remoteKeys, fanOut, services })
  const accounts = createAccountServices({ base, roomBase, syncBase, rooms, appserviceBase, addresses, keys, sending })
  const pushing = createPushServices({ base, roomBase, rooms, accounts })
  const appservices = await createAppserviceServices({ base, appserviceBase, eventsOut, roomBase, accounts })
  const admin = createAdminServices({ base, accounts, addresses, roomBase, rooms, appserviceBase, appservices })
  await admin.notices.prepare()
  const e2e = createE2eServices({ base, syncBase, remote: sending.sentMessages, fanOut, services })
  const singleSignOn = createSingleSignOn({ base, accounts })
  const media = createMediaServices({ base })
  const federation = createFederationServices({ base, localUsers, sending, roomBase, syncBase, rooms, e2e })
  const ownHomeserver = { serverName: base.config.server_name, bound: rooms.acting.thirdPartyInvites.bound }
  const running: readonly LifecyclePart[] = [
    { name: 'the database', stop: db.close },
    { name: 'passwords', stop: accounts.passwords.close },
    { name: 'sessions', stop: base.sessions.close },
    // Listed before the client that it calls with, so it stops after it: closing the client ends the calls in flight.
    { name: 'events to application services', stop: eventsOut.close },
    { name: 'calls to others', stop: outbound.close },
    { name: 'media', stop: media.close },
    { name: 'messages to people', stop: () => messenger.close() },
    {
      name: 'events to other servers',
      start: () => startSending(sending, newNeighbours, rooms.position()),
      stop: sending.outgoing.close,
    },
    ...rooms.running,
    {
      name: 'application services',
      start: () => startAppservices({ base, appserviceBase, eventsOut, appservices, rooms, accounts }),
    },
    ...homeserverWorkers({ base, roomBase, rooms, accounts, appservices, media, pushing }),
    ...identityWorkers(base, addresses.identity, ownHomeserver),
  ]
  await startAll(running)
  metrics.watch({
    roomMemory: roomBase.memoryUse,
    waitingSyncs: syncBase.notifier.waiting,
    answerBytes: rooms.syncing.sync.bytesUnderWay,
    endedSyncs: () => syncBase.notifier.held.ended,
    waitingTransactions: db.waiting,
    waitingPeerRequests: federation.queues.waiting,
    serversAsked: fanOut.asking,
    refusedLogins: accounts.logins.refusals,
    monthlyActiveUsers: admin.statistics.latestMonthlyActiveUsers,
    appserviceFailures: eventsOut.failures,
  })
  return {
    services: endpointServices({
      base,
      addresses,
      accounts,
      admin,
      appservices,
      e2e,
      federation,
      keys,
      media,
      rooms,
      singleSignOn,
      syncBase,
    }),
    metrics,
    log,
    ready: base.ready,
    listening: sending.outgoing.open,
    drain: syncBase.notifier.drain,
    close: () => stopAll(running, log),
  }
}
