import { type AmongNodes, type Context, type ContextOptions, openHomeserverBase } from './base.ts'
import { createAccountServices, createUserSettings } from './domain/accounts/account-services.ts'
import { createLocalUsers } from './domain/accounts/local-users.ts'
import { createAdminServices } from './domain/admin/admin-services.ts'
import {
  createAppserviceEvents,
  createAppserviceServices,
  openAppserviceBase,
} from './domain/appservices/appservice-services.ts'
import { createCallServices } from './domain/calls/call-services.ts'
import { createE2eServices } from './domain/e2e/e2e-services.ts'
import { createFanOut } from './domain/fan-out.ts'
import { createFederationServices } from './domain/federation/federation-services.ts'
import { createNewNeighbours } from './domain/federation/new-neighbours.ts'
import { createSendingServices } from './domain/federation/sending-services.ts'
import { createKeyServices } from './domain/keys/key-services.ts'
import { createMediaServices } from './domain/media/media-services.ts'
import { openModerationServices } from './domain/moderation/moderation-services.ts'
import { createArchiveServices } from './domain/oauth/archive/archive-services.ts'
import { createSignInServices } from './domain/oauth/sign-in-services.ts'
import { createPushServices } from './domain/pushing/push-services.ts'
import { openRoomBase } from './domain/rooms/room-base-services.ts'
import { createRoomServices } from './domain/rooms/room-services.ts'
import { createSearchIndex } from './domain/search/search-index.ts'
import { createSyncBase } from './domain/sync/sync-base.ts'
import { createDirectoryIndex } from './domain/user-directory/directory-index.ts'
import { createAddressServices } from './identity-role.ts'
import { startAreas } from './running.ts'

/** Makes the areas, each from those before it, and starts them. */
export async function createContext(options: ContextOptions, amongNodes?: AmongNodes): Promise<Context> {
  const base = await openHomeserverBase(options, amongNodes)
  const roomBase = await openRoomBase({ base, memoryBytes: options.roomMemoryBytes })
  const moderation = await openModerationServices({ base, roomBase })
  const sending = createSendingServices({ base, roomBase })
  const appserviceBase = await openAppserviceBase({ base })
  const { news: services } = appserviceBase
  const syncBase = createSyncBase({ base, roomBase, services, sending })
  const newNeighbours = createNewNeighbours({ base, roomBase, syncBase, sending })
  const { eventsOut, roomAppservices } = createAppserviceEvents({ base, appserviceBase, roomBase, syncBase })
  const localUsers = createLocalUsers({ base, appserviceBase })
  const addresses = createAddressServices(base)
  const settings = createUserSettings({ base, roomBase, syncBase })
  const rooms = await createRoomServices({
    base,
    localUsers,
    roomBase,
    moderation,
    syncBase,
    sending,
    newNeighbours,
    roomAppservices,
    addresses,
    settings,
  })
  const fanOut = createFanOut({ base, roomBase })
  const keys = createKeyServices({ base, syncBase, remote: sending.remoteKeys, fanOut, services })
  const accounts = createAccountServices({
    base,
    settings,
    roomBase,
    syncBase,
    rooms,
    appserviceBase,
    addresses,
    keys,
    sending,
  })
  const pushing = createPushServices({ base, roomBase, rooms, accounts })
  const searchIndex = createSearchIndex({ base, roomBase, rooms })
  const directoryIndex = createDirectoryIndex({ base, roomBase })
  const appservices = await createAppserviceServices({ base, appserviceBase, eventsOut, roomBase, accounts })
  const admin = createAdminServices({
    base,
    accounts,
    addresses,
    roomBase,
    rooms,
    appserviceBase,
    appservices,
    searchIndex,
    directoryIndex,
    sending,
  })
  await admin.notices.prepare()
  const e2e = createE2eServices({ base, syncBase, remote: sending.sentMessages, fanOut, services })
  const signIn = createSignInServices({ base, accounts })
  const media = createMediaServices({ base, rooms })
  const archives = createArchiveServices({ base, media })
  const federation = createFederationServices({ base, localUsers, sending, roomBase, syncBase, rooms, e2e })
  const calls = createCallServices({ base, accounts, roomBase, rooms })
  return startAreas(options.plansAhead ?? true, {
    base,
    roomBase,
    addresses,
    accounts,
    admin,
    appserviceBase,
    appservices,
    archives,
    calls,
    eventsOut,
    fanOut,
    e2e,
    federation,
    keys,
    media,
    newNeighbours,
    pushing,
    rooms,
    searchIndex,
    directoryIndex,
    sending,
    signIn,
    syncBase,
  })
}
