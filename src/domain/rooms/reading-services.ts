import type { ByteBudget } from '../../core/byte-budget.ts'
import { type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Clock } from '../clock.ts'
import type { LedgerWaker } from '../sync/ledger-waker.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Unread } from '../sync/unread.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import { type Aliases, createAliases } from './act/aliases.ts'
import { createSpaces, type Spaces } from './act/spaces/spaces.ts'
import type { Backfill } from './backfill/backfill.ts'
import { createRoomDirectory, type RoomDirectory } from './read/directory.ts'
import { createRoomReader, type RoomReader } from './read/reader.ts'
import { createReceipts, type Receipts, type WrittenReceipt } from './read/receipts.ts'
import { createTyping, type Typing } from './read/typing.ts'
import type { ReadReceipt, RoomAppservices } from './room/appservices-of-room.ts'
import type { EventCache } from './room/event-cache.ts'
import type { RoomRegistry } from './room/registry.ts'
import type { Room } from './room/room.ts'
import type { RoomAccess } from './room/room-access.ts'
import type { Appender } from './write/append.ts'

/** What users find out about rooms, what rooms are called, and what passes in them without being an event. */
export interface ReadingServices {
  readonly roomReader: RoomReader
  readonly aliases: Aliases
  readonly directory: RoomDirectory
  readonly spaces: Spaces
  readonly receipts: Receipts
  readonly typing: Typing
}

export interface ReadingParts {
  readonly db: Database
  readonly serverName: ServerName
  readonly clock: Clock
  readonly ledger: Ledger
  readonly registry: RoomRegistry
  readonly budget: ByteBudget
  readonly events: EventCache
  readonly access: RoomAccess
  readonly backfill: Backfill
  readonly userRooms: UserRooms
  readonly appender: Appender
  readonly peers: Pick<Peers, 'query' | 'post'>
  readonly appservices: Pick<
    RoomAppservices,
    'requireAlias' | 'findAlias' | 'aliasesChanged' | 'typing' | 'read' | 'isUserOf'
  >
  /** Tells the other servers of a room what passes in it. */
  readonly outgoing: { toRoom(room: Room, edu: JsonObject): void }
  readonly unread: Unread
  readonly notifier: Notifier
  readonly ledgerWaker: LedgerWaker
  /** The next position in the stream of what lives in memory. */
  nextPosition(): number
}

export function createReadingServices(parts: ReadingParts): ReadingServices {
  const { notifier, ledgerWaker, unread } = parts

  /** A room that has just been read is in memory. */
  function tellOthers({ by, event, threadId, ts }: WrittenReceipt): void {
    if (serverOf(by.userId) !== parts.serverName) return
    const room = parts.registry.peek(event.roomNid)
    const data = threadId === '' ? { ts } : { ts, thread_id: threadId }
    const content = room && { [room.id]: { 'm.read': { [by.userId]: { event_ids: [event.id], data } } } }
    if (content) parts.outgoing.toRoom(room, { edu_type: 'm.receipt', content })
  }

  return {
    roomReader: createRoomReader(parts),
    aliases: createAliases(parts),
    directory: createRoomDirectory(parts),
    spaces: createSpaces(parts),
    typing: createTyping({
      ...parts,
      changed(roomNid, user_ids) {
        notifier.wakeRoom(roomNid)
        parts.appservices.typing(roomNid, () => ({ type: 'm.typing', content: { user_ids: [...user_ids()] } }))
      },
      told: (room, user_id, typing) =>
        parts.outgoing.toRoom(room, { edu_type: 'm.typing', content: { room_id: room.id, user_id, typing } }),
    }),
    receipts: createReceipts({
      ...parts,
      waker: ledgerWaker,
      written(receipt) {
        const { by, event, isPublic, isForRoom, position } = receipt
        if (isForRoom) unread.read(by.userNid, event)
        parts.appservices.read(() => readReceipt(receipt))
        if (isPublic) {
          tellOthers(receipt)
          return ledgerWaker.wakeRoom(event.roomNid, position)
        }
        ledgerWaker.rooms.record(event.roomNid, position)
        notifier.wakeUsers([by.userNid])
      },
    }),
  }
}

function readReceipt({ by, event, isPublic, threadId, ts }: WrittenReceipt): ReadReceipt {
  const kind = isPublic ? 'm.read' : 'm.read.private'
  const receipt = threadId === '' ? { ts } : { ts, thread_id: threadId }
  return {
    ...{ roomNid: event.roomNid, userId: by.userId, name: `${kind} ${threadId}`, isPublic },
    event: { type: 'm.receipt', content: { [event.id]: { [kind]: { [by.userId]: receipt } } } },
  }
}
