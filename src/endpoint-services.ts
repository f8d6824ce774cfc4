import type { AccountServices } from './domain/accounts/account-services.ts'
import type { AdminServices } from './domain/admin/admin-services.ts'
import type { AppserviceServices } from './domain/appservices/appservice-services.ts'
import type { HomeserverBase } from './domain/base.ts'
import type { E2eServices } from './domain/e2e/e2e-services.ts'
import type { FederationServices } from './domain/federation/federation-services.ts'
import type { KeyServices } from './domain/keys/key-services.ts'
import type { MediaServices } from './domain/media/media-services.ts'
import type { RoomServices } from './domain/rooms/room-services.ts'
import type { Services } from './domain/services.ts'
import type { SingleSignOn } from './domain/sso/single-sign-on.ts'
import type { SyncBase } from './domain/sync/sync-base.ts'
import type { AddressServices } from './identity-role.ts'

/** What is made in context.ts. */
export interface Areas {
  readonly base: HomeserverBase
  readonly addresses: AddressServices
  readonly accounts: AccountServices
  readonly admin: AdminServices
  readonly appservices: AppserviceServices
  readonly e2e: E2eServices
  readonly federation: FederationServices
  readonly keys: KeyServices
  readonly media: { readonly services: MediaServices }
  readonly rooms: RoomServices
  readonly singleSignOn: SingleSignOn
  readonly syncBase: SyncBase
}

/** Everything that endpoints call, by the names under which they know it. */
export function endpointServices(areas: Areas): Services {
  const { base, addresses, accounts, e2e, keys, rooms } = areas
  const { acting, reading, syncing } = rooms
  return {
    config: base.config,
    clock: base.clock,
    version: base.version,
    pages: base.pages,
    rateLimits: base.rateLimits,
    rateLimitOverrides: base.rateLimitOverrides,
    ownKeys: base.ownKeys,
    identity: addresses.identity,
    admin: areas.admin,
    appservices: areas.appservices,
    federation: areas.federation,
    media: areas.media.services,
    singleSignOn: areas.singleSignOn,
    rooms: acting.rooms,
    upgrades: acting.upgrades,
    addressInvites: acting.addressInvites,
    thirdPartyInvites: acting.thirdPartyInvites,
    roomReader: reading.roomReader,
    aliases: reading.aliases,
    spaces: reading.spaces,
    receipts: reading.receipts,
    threadSubscriptions: reading.threadSubscriptions,
    mutualRooms: reading.mutualRooms,
    userDirectory: reading.userDirectory,
    reports: reading.reports,
    directory: rooms.directory,
    typing: rooms.typing,
    notifications: rooms.notifications,
    sync: syncing.sync,
    keyChanges: syncing.keyChanges,
    eventStream: syncing.eventStream,
    roomSnapshots: syncing.roomSnapshots,
    presence: areas.syncBase.presence,
    // `Services` takes these over as they are: it extends their types.
    ...addresses.contact.services,
    ...accounts,
    ...e2e,
    ...keys,
  }
}
