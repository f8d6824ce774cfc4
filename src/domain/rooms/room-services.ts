import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { ServerName, UserId } from '../../core/ids.ts'
import type { JsonObject, JsonValue } from '../../core/json.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { claimWriter, WRITER } from '../../store/db/writer-lock.ts'
import type { Clock, Random } from '../clock.ts'
import { createInboxes, type Inboxes } from '../e2e/inboxes.ts'
import type { Neighbourhood, NewNeighbours } from '../federation/new-neighbours.ts'
import { createDeviceLists, type DeviceLists, type RemoteDeviceLists } from '../keys/device-lists.ts'
import { createDeviceKeyCounts, type DeviceKeyCounts } from '../keys/key-counts.ts'
import type { Metrics } from '../metrics.ts'
import { createKeyChanges, type KeyChanges } from '../sync/key-changes.ts'
import { createLazyMembers } from '../sync/lazy-members.ts'
import { createLedgerWaker, type LedgerWaker } from '../sync/ledger-waker.ts'
import { createNotifier, type Notifier } from '../sync/notifier.ts'
import { createPresence, type Presence, type PresenceOf } from '../sync/presence.ts'
import { presenceListeners } from '../sync/presence-listeners.ts'
import { RecentChanges } from '../sync/recent-changes.ts'
import { createRoomStates } from '../sync/room-state.ts'
import { createSharedStretches } from '../sync/shared-stretches.ts'
import { createSync, type Sync } from '../sync/sync.ts'
import { createUnread } from '../sync/unread.ts'
import { createUserRooms, type UserRooms } from '../sync/user-rooms.ts'
import type { Users } from '../users.ts'
import { createRoomActions } from './act/actions.ts'
import { type AddressInvites, createAddressInvites } from './act/address-invites.ts'
import { createCanonicalAliasCheck } from './act/canonical-alias.ts'
import { createRoomMaker } from './act/create.ts'
import { createRoomDeletions, type RoomDeletions } from './act/deletion/deletions.ts'
import { createGuardedMembership } from './act/guarded-membership.ts'
import { createGuests, type Guests } from './act/guests.ts'
import type { AskedIdentityServers } from './act/identity-servers.ts'
import { createMemberCheck, createMembership } from './act/membership.ts'
import { createProfileEvents, type ProfileEvents, publicProfile } from './act/profile-events.ts'
import type { Rooms } from './act/rooms.ts'
import { createSharedRoomCheck } from './act/shared-rooms.ts'
import { createThirdPartyInvites, type ThirdPartyInvites } from './act/third-party-invites.ts'
import { createRoomAccess } from './read/access.ts'
import { type ErasedUsers, openErasedUsers } from './read/erased-users.ts'
import { createKeepRelated } from './read/related.ts'
import { createReadingServices, type ReadingServices } from './reading-services.ts'
import type { FederationQueries, KeyRing } from './receive/federation-queries.ts'
import { createPduChecks, type PduChecks } from './receive/pdu-checks.ts'
import type { Receiver } from './receive/receive.ts'
import { createReceivingServices } from './receiving-services.ts'
import { createDecline } from './remote/decline.ts'
import type { ProcessJoin } from './remote/process-join.ts'
import { createRemoteInvites } from './remote/remote-invites.ts'
import { createRemoteMembers, type RemoteMembers } from './remote/remote-members.ts'
import { createResident, type Resident } from './remote/resident.ts'
import { createResidentServers } from './remote/resident-servers.ts'
import type { Resync } from './remote/resync.ts'
import type { RoomAppservices } from './room/appservices-of-room.ts'
import { createRoomBlocks, type RoomBlocks } from './room/blocks.ts'
import { createBranches } from './room/branches.ts'
import { createCheckpoints } from './room/checkpoints.ts'
import { createEventCache, type EventCache } from './room/event-cache.ts'
import { createNoticeRooms } from './room/notice-rooms.ts'
import { openPartialStateRooms, type PartialStateRooms } from './room/partial-state-rooms.ts'
import { createRoomRegistry, type RoomRegistry } from './room/registry.ts'
import type { Room } from './room/room.ts'
import type { RoomEvent } from './room/room-event.ts'
import { openRoomMemory, type RoomMemoryUse } from './room/room-memory.ts'
import { type Appender, createAppender } from './write/append.ts'
import { createClosedRooms } from './write/closed-rooms.ts'
import { openPersister } from './write/persister.ts'
import { createTransactions } from './write/transactions.ts'
import { streamed, type Unit } from './write/unit.ts'

export interface RoomServiceParts {
  readonly config: Config
  readonly db: Database
  readonly ledger: Ledger
  readonly users: Users
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Logger
  readonly questions: FederationQueries
  readonly keys: KeyRing
  /** Identity servers, asked with their users' tokens. */
  readonly identityServers: AskedIdentityServers
  readonly peers: Peers
  readonly appservices: RoomAppservices
  /** For what is cached about rooms, where that is not as usual. */
  readonly memoryBytes?: number | undefined
  /** Told of every event that was committed. */
  readonly outgoing: {
    committed(room: Room, events: readonly RoomEvent[]): void
    toRoom(room: Room, edu: JsonObject): void
    reaches(server: ServerName): boolean
  }
  /** What tells other servers how users are. */
  presenceNews(registry: RoomRegistry, userRooms: UserRooms): (userNid: number, is: PresenceOf) => Promise<void>
  /** What tells other servers of devices that changed. */
  deviceListNews(registry: RoomRegistry): RemoteDeviceLists
  /** What tells other servers of users that theirs come to share a room with. */
  newNeighbours(neighbourhood: Neighbourhood): NewNeighbours
  profileOf(userId: UserId): Promise<Readonly<Record<string, JsonValue>>>
  isKnownUser(userId: UserId): Promise<boolean>
}

export interface RoomServices {
  readonly services: ReadingServices & {
    readonly rooms: Rooms
    readonly addressInvites: AddressInvites
    readonly thirdPartyInvites: ThirdPartyInvites
    readonly sync: Sync
    readonly keyChanges: KeyChanges
    readonly presence: Presence
  }
  readonly notifier: Notifier
  readonly ledgerWaker: LedgerWaker
  readonly deviceLists: DeviceLists
  readonly inboxes: Inboxes
  readonly keyCounts: DeviceKeyCounts
  readonly profileEvents: ProfileEvents
  readonly deletions: RoomDeletions
  readonly blocks: RoomBlocks
  readonly guests: Guests
  readonly registry: RoomRegistry
  /** The newest committed position of the stream of events. */
  position(): number
  readonly events: EventCache
  readonly erasedUsers: ErasedUsers
  readonly appender: Appender
  readonly receiver: Receiver
  readonly processJoin: ProcessJoin
  readonly partialStateRooms: PartialStateRooms
  readonly resync: Resync
  readonly resident: Resident
  readonly remoteMembers: RemoteMembers
  readonly pduChecks: PduChecks
  readonly newNeighbours: NewNeighbours
  /** Bytes that are cached about rooms. */
  memoryUse(): RoomMemoryUse
  close(): Promise<void>
}

const MAX_DEVICES_IN_MEMORY = 50_000

/** Wires everything about rooms and sync. */
export async function createRoomServices(parts: RoomServiceParts): Promise<RoomServices> {
  const { config, db, ledger, users, clock, log } = parts
  const serverName = config.server_name
  const notifier = createNotifier()
  const ledgerWaker = createLedgerWaker({ ledger, notifier })
  const inboxes = createInboxes({ db, ledger })
  const { budget, ...memory } = openRoomMemory(parts.memoryBytes)
  const events = createEventCache({ db, budget })
  const partialStateRooms = await openPartialStateRooms({ db, clock, log })
  const registry = createRoomRegistry({ db, events, serverName, partialStateRooms, budget })
  const userRooms = createUserRooms({ db, budget })
  const remote = parts.deviceListNews(registry)
  const deviceLists = createDeviceLists({
    ...{ db, ledger, notifier, userRooms, remote },
    services: parts.appservices.deviceNews,
  })
  const presenceOf = (userId: UserId) => presence.of(userId)
  const newNeighbours = parts.newNeighbours({ registry, userRooms, deviceLists: remote, log, presenceOf })
  const keyCounts = createDeviceKeyCounts({ db, ledger, notifier, maxDevices: MAX_DEVICES_IN_MEMORY })
  const unread = createUnread({ db, budget })
  const checkpoints = createCheckpoints({ db, log })
  const writing = db.dedicated((client) => claimWriter(client, WRITER))
  let wokenRooms = new Set<number>()
  let wokenUsers = new Set<number>()
  const persister = await openPersister({
    connection: writing,
    writer: WRITER,
    log,
    metrics: parts.metrics,
    committed(unit) {
      takeIn(unit)
      guests.committed(unit)
      parts.outgoing.committed(unit.room, streamed(unit))
      parts.appservices.committed(unit.room, streamed(unit), unit.members)
      newNeighbours.committed(unit.room, unit.members)
      if (streamed(unit).some((event) => event.isInTimeline && !event.isHistory)) wokenRooms.add(unit.room.nid)
    },
    published() {
      for (const roomNid of wokenRooms) notifier.wakeRoom(roomNid)
      notifier.wakeUsers([...wokenUsers])
      wokenRooms = new Set()
      wokenUsers = new Set()
    },
    refused: (room) => registry.drop(room),
    missed(position) {
      log.warn({ position }, 'a commit that was not answered had happened; what is in memory is read again')
      registry.forgetAll()
      events.forgetAll()
      roomEvents.forget(position)
      roomMembers.forget(position)
      userRooms.forgetAll()
      unread.forgetAll()
      parts.appservices.missed(position)
      guests.missed()
    },
  })
  const roomEvents = new RecentChanges(persister.position())
  const roomMembers = new RecentChanges(persister.position())

  /** Brings what was committed to everything in memory that speaks of it. */
  function takeIn(unit: Unit): void {
    const { room } = unit
    const fresh = streamed(unit)
    room.settled(unit)
    room.advance(fresh, unit.changes, unit.after)
    registry.confirm(room)
    roomEvents.record(room.nid, unit.after.nid)
    for (const event of fresh) {
      // A large room that is joined would take the place of all that others read.
      if (event.standing !== 'outlier') events.put(event)
    }
    for (const { event } of unit.redactions) {
      // Another was committed meanwhile, and the first redaction stands.
      if (events.get(event.nid)?.redactedBy !== undefined) continue
      events.put(event)
      if (event.isState) directory.redescribe(room.nid)
    }
    for (const member of unit.members) {
      room.recordMember(member)
      if (member.before !== member.after) roomMembers.record(room.nid, unit.after.nid)
      if (!member.isLocal) presence.moved(member, room.nid, member.after === 'join')
      if (!member.isLocal) continue
      userRooms.changed(member.userNid, room.nid, {
        membership: member.after,
        eventNid: member.eventNid,
        changedAt: member.changedAt,
        forgotten: false,
      })
      wokenUsers.add(member.userNid)
      if (member.after !== 'join') typing.stop(room.nid, member.userNid)
    }
    partialStateRooms.changed(room, unit.members)
    for (const event of fresh) {
      if (event.isInTimeline && !event.isHistory) unread.appended(event, unit.highlights)
    }
    checkpoints.consider(room)
    for (const resync of unit.resynced) {
      // What it holds in memory of its states lacks what was written behind them.
      registry.drop(room)
      partialStateRooms.resynced(resync)
    }
  }

  const pduChecks = createPduChecks(parts)
  const branches = createBranches({ db, persister })
  const { receiver, processJoin, backfill, resync } = createReceivingServices({
    ...parts,
    ...{ serverName, events, registry, persister, pduChecks, branches, checkpoints, partialStateRooms, notifier },
  })
  const appendParts = { ...parts, serverName, events, registry, persister, budget }
  const closed = createClosedRooms()
  const unguarded = createAppender(appendParts)
  const appender = closed.guard(unguarded)
  const guests = createGuests({ db, registry, appender })
  const blocks = createRoomBlocks({ db, clock })
  const noticeRooms = createNoticeRooms({ config, db, registry })
  const erasedUsers = await openErasedUsers({ db, events })
  const access = createRoomAccess({ db, registry, events, erasedUsers, budget })
  const run = parts.random.bytes(6).toString('hex')
  let ephemeral = 0
  const nextPosition = () => ++ephemeral
  const reading = createReadingServices({
    ...appendParts,
    db,
    ledger,
    access,
    appender,
    unread,
    notifier,
    ledgerWaker,
    nextPosition,
    peers: parts.peers,
    outgoing: parts.outgoing,
    appservices: parts.appservices,
    backfill,
    userRooms,
  })
  const { aliases, directory, receipts, typing } = reading
  const profileOf = async (userId: UserId) => publicProfile(await parts.profileOf(userId))
  const resident = createResident({ ...appendParts, db, branches })
  const inviteRemotely = createRemoteInvites({ ...parts, serverName, registry, resident, receiver })
  const thirdPartyInvites = createThirdPartyInvites({
    ...parts,
    ...{ appender, registry, serverName, profileOf, inviteRemotely },
  })
  const residentServers = createResidentServers({ ...parts, serverName, processJoin, registry })
  const remoteMembers = createRemoteMembers({ db, registry, events, users, userRooms, persister })
  const membership = createMembership({
    ...parts,
    ...{ appender, registry, serverName, profileOf, thirdPartyInvites, residentServers, remoteMembers },
    decline: createDecline({ ...parts, serverName, residentServers, remoteMembers }),
    inviteRemotely,
  })
  const rooms: Rooms = {
    create: createRoomMaker({
      ...appendParts,
      db,
      appender,
      ...{ inviteRemotely, log },
      names: { reserve: aliases.reserve, release: aliases.release, publish: directory.publish },
      profileOf,
      isKnownUser: parts.isKnownUser,
      defaultVersion: config.rooms.default_version,
    }),
    ...createGuardedMembership({ membership, closed, blocks, noticeRooms, registry, userRooms }),
    mustShareRoom: createSharedRoomCheck({ userRooms, registry }),
    ...createRoomActions({
      ...{ appender, events, inviteRemotely, serverName },
      transactions: createTransactions(budget),
      checkCanonicalAlias: createCanonicalAliasCheck({ db }),
      checkMember: createMemberCheck({ ...parts, serverName, blocks, noticeRooms }),
    }),
  }

  const deletions = createRoomDeletions({
    ...appendParts,
    ...{ db, ledger, clock, userRooms, closed, rooms, appender: unguarded, idle: persister.idle },
  })
  await deletions.resume()

  const addressInvites = createAddressInvites({
    ...{ appender, registry, rooms, log, profileOf, identityServers: parts.identityServers },
  })

  const presence = createPresence({
    clock,
    enabled: config.presence.enabled,
    nextPosition,
    ...presenceListeners({
      ...{ registry, userRooms, notifier, log },
      appservices: parts.appservices,
      tellServers: parts.presenceNews(registry, userRooms),
    }),
  })

  const sources = {
    ...{ db, clock, registry, events, userRooms, unread, presence, inboxes, users, deviceLists, keyCounts },
    states: createRoomStates({ db, events }),
    lazyMembers: createLazyMembers(budget),
    stretches: createSharedStretches(budget),
    ...{ roomEvents, roomMembers, partialStateRooms },
    roomLedger: ledgerWaker.rooms,
    userLedger: ledgerWaker.users,
    typing: typing.inRoom,
    receipts: receipts.between,
    ...{ visibleTo: access.visibleTo, membershipsAt: access.membershipsAt, mayShowUpTo: access.mayShowUpTo },
    keepRelated: createKeepRelated({ db, events, access }),
  }
  const now = () => {
    const position = ledger.position()
    return { events: [persister.position()], ledger: position, toDevice: position, ephemeral, run }
  }
  const sync = createSync({ clock, notifier, presence, userRooms, sources, now })
  const keyChanges = createKeyChanges({ userRooms, sources, now })
  return {
    services: { rooms, addressInvites, thirdPartyInvites, sync, keyChanges, presence, ...reading },
    notifier,
    ledgerWaker,
    ...{ deletions, blocks, appender, guests },
    deviceLists,
    inboxes,
    keyCounts,
    ...{ receiver, processJoin, registry, events, erasedUsers, position: persister.position },
    ...{ resident, remoteMembers, pduChecks, partialStateRooms, resync, newNeighbours },
    memoryUse: () => memory.use({ events, rooms: registry }),
    profileEvents: createProfileEvents({ appender, registry, users, userRooms, profileOf }),
    async close() {
      memory.close()
      presence.close()
      typing.close()
      await resync.close()
      await persister.idle()
      await pduChecks.close()
    },
  }
}
