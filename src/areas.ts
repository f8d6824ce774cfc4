import type { AccountServices } from './domain/accounts/account-services.ts'
import type { AdminServices } from './domain/admin/admin-services.ts'
import type { AppserviceBase, AppserviceServices } from './domain/appservices/appservice-services.ts'
import type { EventsOut } from './domain/appservices/events-out.ts'
import type { HomeserverBase } from './domain/base.ts'
import type { CallServices } from './domain/calls/call-services.ts'
import type { E2eServices } from './domain/e2e/e2e-services.ts'
import type { FanOut } from './domain/fan-out.ts'
import type { FederationServices } from './domain/federation/federation-services.ts'
import type { NewNeighbours } from './domain/federation/new-neighbours.ts'
import type { SendingServices } from './domain/federation/sending-services.ts'
import type { KeyServices } from './domain/keys/key-services.ts'
import type { MediaParts } from './domain/media/media-services.ts'
import type { Archives } from './domain/oauth/archive/archives.ts'
import type { SignInServices } from './domain/oauth/sign-in-services.ts'
import type { PushServices } from './domain/pushing/push-services.ts'
import type { RoomBase } from './domain/rooms/room-base-services.ts'
import type { RoomServices } from './domain/rooms/room-services.ts'
import type { SearchIndex } from './domain/search/search-index.ts'
import type { SyncBase } from './domain/sync/sync-base.ts'
import type { DirectoryIndex } from './domain/user-directory/directory-index.ts'
import type { AddressServices } from './identity-role.ts'

/** What is made in context.ts. */
export interface Areas {
  readonly base: HomeserverBase
  readonly roomBase: RoomBase
  readonly addresses: AddressServices
  readonly accounts: AccountServices
  readonly admin: AdminServices
  readonly appserviceBase: AppserviceBase
  readonly appservices: AppserviceServices
  readonly calls: CallServices
  readonly eventsOut: EventsOut
  readonly fanOut: FanOut
  readonly e2e: E2eServices
  readonly federation: FederationServices
  readonly keys: KeyServices
  readonly media: MediaParts
  readonly rooms: RoomServices
  readonly searchIndex: SearchIndex
  readonly directoryIndex: DirectoryIndex
  readonly sending: SendingServices
  readonly newNeighbours: NewNeighbours
  readonly pushing: PushServices
  readonly signIn: SignInServices
  readonly archives: Archives
  readonly syncBase: SyncBase
}
