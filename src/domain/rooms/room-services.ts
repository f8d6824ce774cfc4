import type { ServerName, UserId } from '../../core/ids.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { LocalUsers } from '../accounts/local-users.ts'
import type { HomeserverBase } from '../base.ts'
import type { LifecyclePart } from '../lifecycle.ts'
import type { ModerationServices } from '../moderation/moderation-services.ts'
import { createNotifications, type Notifications } from '../pushing/notifications.ts'
import type { SyncBase } from '../sync/sync-base.ts'
import { createSyncServices, type SyncServices } from '../sync/sync-services.ts'
import type { AskedIdentityServers } from './act/identity-servers.ts'
import { publicProfile } from './act/profile-events.ts'
import type { SettingsCarrier } from './act/upgrade/successions.ts'
import { type ActingServices, createActingServices } from './acting-services.ts'
import { createRoomAccess } from './read/access.ts'
import { createRoomDirectory, type RoomDirectory } from './read/directory.ts'
import type { Typing } from './read/typing.ts'
import { createReadingServices, createRoomTyping, type EduSender, type ReadingServices } from './reading-services.ts'
import type { FederationQueries, KeyRing } from './receive/federation-queries.ts'
import { createReceivingServices, type ReceivingServices } from './receiving-services.ts'
import type { RoomAppservices } from './room/appservices-of-room.ts'
import type { RoomAccess } from './room/room-access.ts'
import type { RoomBase } from './room-base-services.ts'
import type { CommitSubscribers } from './write/commit-listeners.ts'
import { openWritingServices, type WritingServices } from './writing-services.ts'

export interface RoomServiceParts {
  readonly base: Pick<
    HomeserverBase,
    'config' | 'db' | 'ledger' | 'restores' | 'users' | 'clock' | 'random' | 'metrics' | 'log'
  > & {
    readonly signingKey: SigningKey
    /** Keys of other servers. */
    readonly serverKeys: KeyRing
  }
  readonly roomBase: RoomBase
  readonly moderation: ModerationServices
  readonly syncBase: SyncBase
  /** Queries to other servers, and what is sent to them. */
  readonly sending: {
    readonly peers: Peers
    readonly queries: FederationQueries
    readonly outgoing: CommitSubscribers['outgoing'] & EduSender & { reaches(server: ServerName): boolean }
  }
  /** Identity servers, called with their users' tokens. */
  readonly addresses: { readonly identityServers: AskedIdentityServers }
  readonly roomAppservices: RoomAppservices
  /** Tells another server about a user of ours once its users share a room with them. */
  readonly newNeighbours: CommitSubscribers['newNeighbours']
  readonly localUsers: Pick<LocalUsers, 'profileOf' | 'isKnown'>
  /** Copies what users set for a room to the room that replaces it. */
  readonly settings: { readonly rooms: SettingsCarrier }
}

export interface RoomServices {
  readonly moderation: ModerationServices
  readonly acting: ActingServices
  readonly reading: ReadingServices
  readonly directory: RoomDirectory
  readonly typing: Typing
  readonly syncing: SyncServices
  readonly writing: WritingServices
  readonly receiving: ReceivingServices
  readonly access: RoomAccess
  readonly notifications: Notifications
  /** The newest committed position of the event stream. */
  position(): number
  /** What runs beside the requests, in starting order. */
  readonly running: readonly LifecyclePart[]
}

/** Wires everything about rooms and sync. */
export async function createRoomServices(parts: RoomServiceParts): Promise<RoomServices> {
  const { base, sending, moderation } = parts
  const { config, db, ledger, restores, users, signingKey, serverKeys: keys, clock, random, metrics, log } = base
  const { roomBase, syncBase, localUsers, roomAppservices: appservices, newNeighbours } = parts
  const { identityServers } = parts.addresses
  const { peers, outgoing } = sending
  const { events, registry, userRooms, budget, unread, erasedUsers, ignoredUsers } = roomBase
  const { notifier, ledgerWaker, presence } = syncBase
  const serverName = config.server_name
  const profileOf = async (userId: UserId) => publicProfile(await localUsers.profileOf(userId))
  const { lifetimes } = roomBase
  const access = createRoomAccess({ db, registry, events, erasedUsers, ignoredUsers, budget, lifetimes })
  const directory = createRoomDirectory({ serverName, db, registry, clock, peers, budget })
  const nextPosition = syncBase.ephemeral.next
  const typing = createRoomTyping({ clock, access, notifier, appservices, outgoing, nextPosition })
  const writing = await openWritingServices({
    serverName,
    db,
    users,
    signingKey,
    clock,
    random,
    metrics,
    log,
    peers,
    outgoing,
    notifier,
    roomBase,
    roomSettings: parts.settings.rooms,
    directory,
    presence,
    typing,
    appservices,
    newNeighbours,
  })
  const { appender, persister } = writing
  const receiving = createReceivingServices({ base, sending, moderation, notifier, roomBase, writing })
  const reading = createReadingServices({
    config,
    db,
    serverName,
    clock,
    ledger,
    users,
    registry,
    budget,
    events,
    access,
    ignoredUsers,
    backfill: receiving.backfill,
    userRooms,
    appender,
    peers,
    appservices,
    outgoing,
    unread,
    threadFollowers: roomBase.threadFollowers,
    notifier,
    ledgerWaker,
    push: roomBase.pushSignals,
  })
  const acting = await createActingServices({
    config,
    serverName,
    db,
    ledger,
    users,
    signingKey,
    clock,
    random,
    log,
    gate: moderation.gate,
    ledgerWaker,
    notifier,
    keys,
    peers,
    identityServers,
    outgoing,
    roomBase,
    writing,
    receiving,
    aliases: reading.aliases,
    directory,
    appservices,
    profileOf,
    isKnownUser: localUsers.isKnown,
  })
  const { receipts, roomReader } = reading
  const syncing = createSyncServices({
    db,
    ledger,
    clock,
    restores,
    metrics: metrics.sync,
    users,
    roomBase,
    syncBase,
    access,
    typing,
    receipts,
    threadSubscriptions: reading.threadSubscriptions,
    roomReader,
    directory,
    position: persister.position,
  })
  return {
    moderation,
    acting,
    reading,
    directory,
    typing,
    syncing,
    writing,
    receiving,
    access,
    notifications: createNotifications({ db, clock, roomBase, access }),
    position: persister.position,
    running: runningParts(roomBase, syncBase, typing, writing, receiving),
  }
}

/** In starting order; the last is stopped first. */
function runningParts(
  roomBase: RoomBase,
  { presence }: SyncBase,
  typing: Typing,
  { persister }: WritingServices,
  { pduChecks, resync }: ReceivingServices,
): readonly LifecyclePart[] {
  return [
    { name: 'signature checks', stop: pduChecks.close },
    { name: 'the writer of events', stop: persister.idle },
    { name: 'resyncs', start: resync.start, stop: resync.close },
    { name: 'typing', stop: typing.close },
    { name: 'presence', stop: presence.close },
    { name: 'the memory of rooms', stop: roomBase.close },
  ]
}
