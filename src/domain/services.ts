import type { Setting } from '../config/render.ts'
import type { Config } from '../config/schema.ts'
import type { AccountServices } from './accounts/account-services.ts'
import type { AdminServices } from './admin/admin-services.ts'
import type { AppserviceServices } from './appservices/appservice-services.ts'
import type { CallServices } from './calls/call-services.ts'
import type { Clock } from './clock.ts'
import type { ContactServices } from './contact/contact-services.ts'
import type { DelayedEvents } from './delayed-events/delayed-events.ts'
import type { E2eServices } from './e2e/e2e-services.ts'
import type { FederationServices } from './federation/federation-services.ts'
import type { OwnKeys } from './federation/own-keys.ts'
import type { IdentityServices } from './identity/identity-services.ts'
import type { DehydratedDevices } from './keys/dehydrated-devices.ts'
import type { KeyServices } from './keys/key-services.ts'
import type { MediaServices } from './media/media-services.ts'
import type { Archives } from './oauth/archive/archives.ts'
import type { OauthServices } from './oauth/oauth-services.ts'
import type { Pages } from './pages.ts'
import type { ThreadSubscriptions } from './push/thread-subscriptions.ts'
import type { Notifications } from './pushing/notifications.ts'
import type { RateLimitOverrides } from './rate-limit-overrides.ts'
import type { RateLimits } from './rate-limits.ts'
import type { Rendezvous } from './rendezvous/rendezvous.ts'
import type { AddressInvites } from './rooms/act/address-invites.ts'
import type { Aliases } from './rooms/act/aliases.ts'
import type { Reports } from './rooms/act/reports.ts'
import type { Rooms } from './rooms/act/rooms.ts'
import type { Spaces } from './rooms/act/spaces/spaces.ts'
import type { ThirdPartyInvites } from './rooms/act/third-party-invites.ts'
import type { Upgrades } from './rooms/act/upgrade/upgrades.ts'
import type { RoomDirectory } from './rooms/read/directory.ts'
import type { MutualRooms } from './rooms/read/mutual-rooms.ts'
import type { RoomReader } from './rooms/read/reader.ts'
import type { Receipts } from './rooms/read/receipts.ts'
import type { Typing } from './rooms/read/typing.ts'
import type { UserDirectory } from './rooms/read/user-directory.ts'
import type { SingleSignOn } from './sso/single-sign-on.ts'
import type { KeyChanges } from './sync/key-changes.ts'
import type { EventStream } from './sync/peek/event-stream.ts'
import type { RoomSnapshots } from './sync/peek/room-snapshots.ts'
import type { Presence } from './sync/presence.ts'
import type { SlidingRequests } from './sync/sliding/read-request.ts'
import type { SlidingSync } from './sync/sliding/sliding-sync.ts'
import type { Sync } from './sync/sync.ts'
import type { ProfileAccess } from './user-directory/profile-access.ts'

/**
 * Everything that endpoints call, one property per service. `context.ts` makes the areas, and `endpoint-services.ts` lists the services
 * one by one.
 */
export interface Services extends Omit<AccountServices, 'newLogins'>, ContactServices, E2eServices, KeyServices {
  readonly config: Config
  readonly clock: Clock
  /** The configuration, for people to read: without secrets. */
  settings(): readonly Setting[]
  /** This server's own release: `0.1.0`. */
  readonly version: string
  /** The web pages, from `loadPages(config)`. */
  readonly pages: Pages
  readonly rateLimits: RateLimits
  readonly rateLimitOverrides: RateLimitOverrides
  readonly rooms: Rooms
  readonly upgrades: Upgrades
  readonly addressInvites: AddressInvites
  readonly thirdPartyInvites: ThirdPartyInvites
  readonly roomReader: RoomReader
  readonly aliases: Aliases
  readonly directory: RoomDirectory
  readonly spaces: Spaces
  readonly receipts: Receipts
  readonly threadSubscriptions: ThreadSubscriptions
  readonly mutualRooms: MutualRooms
  readonly userDirectory: UserDirectory
  readonly reports: Reports
  readonly typing: Typing
  readonly notifications: Notifications
  readonly sync: Sync
  readonly slidingRequests: SlidingRequests
  readonly slidingSync: SlidingSync
  readonly keyChanges: KeyChanges
  readonly eventStream: EventStream
  readonly roomSnapshots: RoomSnapshots
  readonly presence: Presence
  readonly profileAccess: ProfileAccess
  /** This server's signing keys, as other servers see them. */
  readonly ownKeys: OwnKeys
  readonly admin: AdminServices
  /** What other servers request, made in federation/federation-services.ts. */
  readonly federation: FederationServices
  readonly singleSignOn: SingleSignOn
  /** Sign-in by OAuth, and sessions of browsers. */
  readonly oauth: OauthServices
  readonly archives: Archives
  /** Bridges and bots, made in appservices/appservice-services.ts. */
  readonly appservices: AppserviceServices
  readonly media: MediaServices
  /** TURN and MatrixRTC, made in calls/call-services.ts. */
  readonly calls: CallServices
  readonly delayedEvents: DelayedEvents
  readonly rendezvous: Rendezvous
  readonly dehydratedDevices: DehydratedDevices
  /** The identity service, made in identity/identity-services.ts. */
  readonly identity: IdentityServices
}
