import type { Config } from '../../config/schema.ts'
import type { ByteBudget } from '../../core/byte-budget.ts'
import { type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Clock } from '../clock.ts'
import type { ThreadFollowers } from '../push/thread-followers.ts'
import { createThreadSubscriptions, type ThreadSubscriptions } from '../push/thread-subscriptions.ts'
import type { LedgerWaker } from '../sync/ledger-waker.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Unread } from '../sync/unread.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import type { Users } from '../users.ts'
import { type Aliases, createAliases } from './act/aliases.ts'
import { createReports, type Reports } from './act/reports.ts'
import { createSpaces, type Spaces } from './act/spaces/spaces.ts'
import type { Backfill } from './backfill/backfill.ts'
import type { IgnoredUsers } from './read/ignored-users.ts'
import { createMutualRooms, type MutualRooms } from './read/mutual-rooms.ts'
import { createOpenAccess } from './read/open-access.ts'
import { createRoomReader, type RoomReader } from './read/reader.ts'
import { createReceipts, type ReceiptParts, type Receipts, type WrittenReceipt } from './read/receipts.ts'
import { createTyping, type Typing } from './read/typing.ts'
import { createUserDirectory, type UserDirectory } from './read/user-directory.ts'
import type { ReadReceipt, RoomAppservices } from './room/appservices-of-room.ts'
import type { EventCache } from './room/event-cache.ts'
import type { PushListener } from './room/push-signals.ts'
import type { RoomRegistry } from './room/registry.ts'
import type { Room } from './room/room.ts'
import type { RoomAccess } from './room/room-access.ts'
import type { Appender } from './write/append.ts'

/** What users read of rooms, the names of rooms, and what users have read. */
export interface ReadingServices {
  readonly roomReader: RoomReader
  /** What operators read: all of every room. */
  readonly openReader: RoomReader
  readonly aliases: Aliases
  readonly spaces: Spaces
  readonly receipts: Receipts
  readonly threadSubscriptions: ThreadSubscriptions
  readonly mutualRooms: MutualRooms
  readonly userDirectory: UserDirectory
  readonly reports: Reports
}

/** Sends EDUs to the other servers of a room. */
export interface EduSender {
  toRoom(room: Room, edu: JsonObject): void
}

export interface ReadingParts {
  readonly config: Config
  readonly db: Database
  readonly serverName: ServerName
  readonly clock: Clock
  readonly ledger: Ledger
  readonly users: Users
  readonly registry: RoomRegistry
  readonly budget: ByteBudget
  readonly events: EventCache
  readonly access: RoomAccess
  readonly ignoredUsers: IgnoredUsers
  readonly backfill: Backfill
  readonly userRooms: UserRooms
  readonly appender: Appender
  readonly peers: Pick<Peers, 'query' | 'post'>
  readonly appservices: Pick<RoomAppservices, 'requireAlias' | 'findAlias' | 'aliasesChanged' | 'read' | 'isUserOf'>
  readonly outgoing: EduSender
  readonly unread: Unread
  readonly threadFollowers: ThreadFollowers
  readonly notifier: Notifier
  readonly ledgerWaker: LedgerWaker
  /** Pushers, whose badges count what is unread. */
  readonly push: Pick<PushListener, 'read'>
}

export function createReadingServices(parts: ReadingParts): ReadingServices {
  const { db, serverName, clock, ledger, registry, budget, events, access, backfill, userRooms } = parts
  const { appender, peers, appservices, ledgerWaker } = parts
  const readerOf = (through: RoomAccess, ignoredUsers: Pick<IgnoredUsers, 'of'>): RoomReader =>
    createRoomReader({
      db,
      events,
      access: through,
      ignoredUsers,
      registry,
      userRooms,
      clock,
      backfill,
      serverName,
      peers,
      appservices,
    })
  return {
    roomReader: readerOf(access, parts.ignoredUsers),
    openReader: readerOf(createOpenAccess({ registry, events }), { of: () => undefined }),
    aliases: createAliases({ db, serverName, clock, access, registry, appender, peers, appservices }),
    spaces: createSpaces({ budget, registry, events, userRooms, peers, clock, serverName }),
    receipts: createReceipts({
      db,
      ledger,
      clock,
      access,
      events,
      ignoredUsers: parts.ignoredUsers,
      waker: ledgerWaker,
      written: receiptListener(parts),
    }),
    reports: createReports({ db, clock, users: parts.users, registry, access }),
    threadSubscriptions: createThreadSubscriptions({
      ...{ db, ledger, access },
      followers: parts.threadFollowers,
      waker: ledgerWaker,
    }),
    mutualRooms: createMutualRooms({ db }),
    userDirectory: createUserDirectory({ config: parts.config, db, ignoredUsers: parts.ignoredUsers }),
  }
}

/** Typing, sent to syncs, services and other servers. */
export function createRoomTyping(parts: {
  readonly clock: Clock
  readonly access: RoomAccess
  readonly notifier: Pick<Notifier, 'wakeRoom'>
  readonly appservices: Pick<RoomAppservices, 'typing'>
  readonly outgoing: EduSender
  nextPosition(): number
}): Typing {
  const { clock, access, notifier, appservices, outgoing, nextPosition } = parts
  return createTyping({
    clock,
    access,
    nextPosition,
    changed(roomNid, user_ids) {
      notifier.wakeRoom(roomNid)
      appservices.typing(roomNid, () => ({ type: 'm.typing', content: { user_ids: [...user_ids()] } }))
    },
    toServers: (room, user_id, typing) =>
      outgoing.toRoom(room, { edu_type: 'm.typing', content: { room_id: room.id, user_id, typing } }),
  })
}

/** Sends new receipts to syncs, services and other servers. */
function receiptListener(
  parts: Pick<
    ReadingParts,
    'serverName' | 'registry' | 'unread' | 'notifier' | 'ledgerWaker' | 'appservices' | 'outgoing' | 'push'
  >,
): ReceiptParts['written'] {
  const { serverName, registry, unread, notifier, ledgerWaker, appservices, outgoing, push } = parts

  /** The room is in memory, because it was just read. */
  function tellOthers({ by, event, threadId, ts }: WrittenReceipt): void {
    if (serverOf(by.userId) !== serverName) return
    const room = registry.peek(event.roomNid)
    const data = threadId === '' ? { ts } : { ts, thread_id: threadId }
    const content = room && { [room.id]: { 'm.read': { [by.userId]: { event_ids: [event.id], data } } } }
    if (content) outgoing.toRoom(room, { edu_type: 'm.receipt', content })
  }

  return (receipt) => {
    const { by, event, isPublic, isShadowed, threadId, position } = receipt
    unread.read(by.userNid, event, threadId)
    push.read(by.userNid, event.roomNid)
    if (!isShadowed) appservices.read(() => readReceipt(receipt))
    if (isPublic) {
      if (!isShadowed) tellOthers(receipt)
      return ledgerWaker.wakeRoom(event.roomNid, position)
    }
    ledgerWaker.rooms.record(event.roomNid, position)
    notifier.wakeUsers([by.userNid])
  }
}

function readReceipt({ by, event, isPublic, threadId, ts }: WrittenReceipt): ReadReceipt {
  const kind = isPublic ? 'm.read' : 'm.read.private'
  const receipt = threadId === '' ? { ts } : { ts, thread_id: threadId }
  return {
    roomNid: event.roomNid,
    userId: by.userId,
    name: `${kind} ${threadId}`,
    isPublic,
    event: { type: 'm.receipt', content: { [event.id]: { [kind]: { [by.userId]: receipt } } } },
  }
}
