import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { ServerName, UserId } from '../../core/ids.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Clock, Random } from '../clock.ts'
import type { Gate } from '../moderation/gate.ts'
import { createGatedRooms } from '../moderation/gated-rooms.ts'
import { createShadowedRooms } from '../moderation/shadowed-rooms.ts'
import type { LedgerWaker } from '../sync/ledger-waker.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Users } from '../users.ts'
import { createRoomActions } from './act/actions.ts'
import { type AddressInvites, createAddressInvites } from './act/address-invites.ts'
import type { Aliases } from './act/aliases.ts'
import { createCanonicalAliasCheck } from './act/canonical-alias.ts'
import { createRoomMaker } from './act/create.ts'
import { createRoomDeletions, type RoomDeletions } from './act/deletion/deletions.ts'
import { createHistoryPurges, type HistoryPurges } from './act/deletion/history-purges.ts'
import { createRetentionRounds, type RetentionRounds } from './act/deletion/retention.ts'
import { createGuardedMembership } from './act/guarded-membership.ts'
import type { AskedIdentityServers } from './act/identity-servers.ts'
import { createMemberCheck, createMembership } from './act/membership.ts'
import { createProfileEvents, type ProfileEvents, type PublicProfile } from './act/profile-events.ts'
import { createRelationCheck } from './act/relation-check.ts'
import type { Rooms } from './act/rooms.ts'
import { createSharedRoomCheck } from './act/shared-rooms.ts'
import { createThirdPartyInvites, type ThirdPartyInvites } from './act/third-party-invites.ts'
import { createUpgrades, type Upgrades } from './act/upgrade/upgrades.ts'
import type { RoomDirectory } from './read/directory.ts'
import type { KeyRing } from './receive/federation-queries.ts'
import type { ReceivingServices } from './receiving-services.ts'
import { createDecline, type Decline } from './remote/decline.ts'
import { createRemoteInvites, type InviteRemotely } from './remote/remote-invites.ts'
import { createRemoteMembers, type RemoteMembers } from './remote/remote-members.ts'
import { createResident, type Resident } from './remote/resident.ts'
import { createResidentServers, type ResidentServers } from './remote/resident-servers.ts'
import type { RoomAppservices } from './room/appservices-of-room.ts'
import { createRoomBlocks, type RoomBlocks } from './room/blocks.ts'
import { createNoticeRooms, type NoticeRooms } from './room/notice-rooms.ts'
import type { RoomBase } from './room-base-services.ts'
import { createTransactions } from './write/transactions.ts'
import type { WritingServices } from './writing-services.ts'

/** What local users and operators do in rooms, and memberships across servers. */
export interface ActingServices {
  readonly rooms: Rooms
  readonly addressInvites: AddressInvites
  readonly thirdPartyInvites: ThirdPartyInvites
  readonly profileEvents: ProfileEvents
  readonly deletions: RoomDeletions
  readonly historyPurges: HistoryPurges
  /** Undefined where messages are kept for ever. */
  readonly retention: RetentionRounds | undefined
  readonly blocks: RoomBlocks
  readonly resident: Resident
  readonly remoteMembers: RemoteMembers
  readonly upgrades: Upgrades
}

export interface ActingParts {
  readonly config: Config
  readonly serverName: ServerName
  readonly db: Database
  readonly ledger: Ledger
  readonly users: Users
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly gate: Gate
  readonly ledgerWaker: Pick<LedgerWaker, 'rooms'>
  readonly notifier: Pick<Notifier, 'wakeUsers'>
  readonly keys: KeyRing
  readonly peers: Peers
  readonly identityServers: AskedIdentityServers
  readonly outgoing: { reaches(server: ServerName): boolean }
  readonly roomBase: Pick<
    RoomBase,
    | 'invitePermission'
    | 'events'
    | 'registry'
    | 'userRooms'
    | 'budget'
    | 'unread'
    | 'shadowBans'
    | 'lifetimes'
    | 'pushSignals'
  >
  readonly writing: WritingServices
  readonly receiving: Pick<ReceivingServices, 'receiver' | 'processJoin'>
  readonly aliases: Pick<Aliases, 'reserve' | 'release'>
  readonly directory: Pick<RoomDirectory, 'publish'>
  readonly appservices: Pick<RoomAppservices, 'aliasesChanged'>
  /** The profile of a user, as member events repeat it. */
  profileOf(userId: UserId): Promise<PublicProfile>
  /** Whether a local user of that id exists and may be invited. */
  isKnownUser(userId: UserId): Promise<boolean>
}

/** Memberships across servers. */
interface RemoteServices {
  readonly resident: Resident
  readonly inviteRemotely: InviteRemotely
  readonly residentServers: ResidentServers
  readonly remoteMembers: RemoteMembers
  readonly decline: Decline
}

/** The checks that keep users out of rooms. */
interface Barriers {
  readonly blocks: RoomBlocks
  readonly noticeRooms: NoticeRooms
  readonly upgrades: Upgrades
}

export async function createActingServices(parts: ActingParts): Promise<ActingServices> {
  const { config, serverName, db, ledger, users, clock, random, log, peers, identityServers } = parts
  const { profileOf, isKnownUser } = parts
  const { events, registry, userRooms } = parts.roomBase
  const { appender, unguarded, closed, persister } = parts.writing
  const remote = createRemoteServices(parts)
  const { inviteRemotely } = remote
  const blocks = createRoomBlocks({ db, clock })
  const noticeRooms = createNoticeRooms({ config, db, registry })
  const thirdPartyInvites = createThirdPartyInvites({
    appender,
    registry,
    users,
    serverName,
    identityServers,
    peers,
    inviteRemotely,
    log,
    profileOf,
    isKnownUser,
  })
  const upgrades = createUpgrades({
    serverName,
    db,
    clock,
    random,
    log,
    users,
    registry,
    events,
    appender,
    signingKey: parts.signingKey,
    successions: parts.writing.successions,
    appservices: parts.appservices,
    profileOf,
  })
  const open = createRooms(parts, remote, { blocks, noticeRooms, upgrades }, thirdPartyInvites)
  const profileEvents = createProfileEvents({ appender, registry, users, userRooms, profileOf })
  const rooms = createShadowedRooms(createGatedRooms(profileEvents.following(open), parts.gate, registry), {
    bans: parts.roomBase.shadowBans,
    registry,
    clock,
    random,
    ledger,
    ledgerWaker: parts.ledgerWaker,
    notifier: parts.notifier,
  })
  const deletions = createRoomDeletions({
    serverName,
    db,
    ledger,
    clock,
    random,
    log,
    users,
    registry,
    events,
    userRooms,
    closed,
    rooms,
    appender: unguarded,
    idle: persister.idle,
  })
  await deletions.resume()
  const { lifetimes, unread, pushSignals: push } = parts.roomBase
  const historyPurges = createHistoryPurges({ db, clock, random, log, registry, events, unread, push })
  return {
    rooms,
    addressInvites: createAddressInvites({ appender, registry, rooms, log, profileOf, identityServers }),
    thirdPartyInvites,
    profileEvents,
    deletions,
    historyPurges,
    retention: lifetimes && createRetentionRounds({ db, clock, log, registry, lifetimes, purges: historyPurges }),
    blocks,
    resident: remote.resident,
    remoteMembers: remote.remoteMembers,
    upgrades,
  }
}

function createRemoteServices(parts: ActingParts): RemoteServices {
  const { serverName, signingKey, clock, random, log, db, users, keys, peers, outgoing } = parts
  const { events, registry, userRooms } = parts.roomBase
  const { persister, branches, policies } = parts.writing
  const { receiver, processJoin } = parts.receiving
  const resident = createResident({ serverName, signingKey, clock, db, registry, events, branches })
  const residentServers = createResidentServers({
    serverName,
    signingKey,
    clock,
    random,
    peers,
    processJoin,
    keys,
    registry,
    outgoing,
  })
  const remoteMembers = createRemoteMembers({ db, registry, events, users, userRooms, persister })
  return {
    resident,
    inviteRemotely: createRemoteInvites({
      serverName,
      signingKey,
      random,
      keys,
      registry,
      resident,
      receiver,
      peers,
      policies,
    }),
    residentServers,
    remoteMembers,
    decline: createDecline({ serverName, signingKey, clock, random, residentServers, remoteMembers, log }),
  }
}

function createRooms(
  parts: ActingParts,
  { inviteRemotely, residentServers, remoteMembers, decline }: RemoteServices,
  { blocks, noticeRooms, upgrades }: Barriers,
  thirdPartyInvites: ThirdPartyInvites,
): Rooms {
  const { config, serverName, db, signingKey, clock, random, log, aliases, directory, profileOf, isKnownUser } = parts
  const { events, registry, userRooms, budget, invitePermission } = parts.roomBase
  const { appender, closed, successions } = parts.writing
  const membership = createMembership({
    db,
    appender,
    registry,
    serverName,
    thirdPartyInvites,
    residentServers,
    remoteMembers,
    decline,
    inviteRemotely,
    profileOf,
    isKnownUser,
    invitePermission,
  })
  const guarded = createGuardedMembership({
    membership,
    closed,
    blocks,
    noticeRooms,
    registry,
    userRooms,
    upgrades,
    successions,
  })
  const actions = createRoomActions({
    appender,
    events,
    inviteRemotely,
    serverName,
    transactions: createTransactions(budget),
    checkRelation: createRelationCheck({ db, events, registry }),
    checkCanonicalAlias: createCanonicalAliasCheck({ db }),
    checkMember: createMemberCheck({ serverName, isKnownUser, invitePermission, blocks, noticeRooms }),
  })
  return {
    create: createRoomMaker({
      serverName,
      signingKey,
      clock,
      random,
      events,
      db,
      appender,
      names: { reserve: aliases.reserve, release: aliases.release, publish: directory.publish },
      inviteRemotely,
      log,
      defaultVersion: config.rooms.default_version,
      defaults: config.rooms,
      profileOf,
      isKnownUser,
      invitePermission,
    }),
    join: guarded.join,
    knock: guarded.knock,
    leave: guarded.leave,
    invite: guarded.invite,
    kick: guarded.kick,
    ban: guarded.ban,
    unban: guarded.unban,
    forget: guarded.forget,
    mustShareRoom: createSharedRoomCheck({ db }),
    send: actions.send,
    setState: actions.setState,
    redact: actions.redact,
  }
}
