import type { ServerName } from '../../core/ids.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db.ts'
import type { Ledger } from '../../store/ledger.ts'
import type { Clock } from '../clock.ts'
import type { LedgerWaker } from '../sync/ledger-waker.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { Unread } from '../sync/unread.ts'
import type { RoomAccess } from './access.ts'
import { type Aliases, createAliases } from './aliases.ts'
import type { Appender } from './append.ts'
import { createRoomDirectory, type RoomDirectory } from './directory.ts'
import type { EventCache } from './event-cache.ts'
import { createRoomReader, type RoomReader } from './reader.ts'
import { createReceipts, type Receipts } from './receipts.ts'
import type { RoomRegistry } from './registry.ts'
import { createTyping, type Typing } from './typing.ts'

/** What users find out about rooms, what rooms are called, and what passes in them without being an event. */
export interface ReadingServices {
  readonly roomReader: RoomReader
  readonly aliases: Aliases
  readonly directory: RoomDirectory
  readonly receipts: Receipts
  readonly typing: Typing
}

export interface ReadingParts {
  readonly db: Database
  readonly serverName: ServerName
  readonly clock: Clock
  readonly ledger: Ledger
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly access: RoomAccess
  readonly appender: Appender
  readonly peers: Pick<Peers, 'query'>
  readonly unread: Unread
  readonly notifier: Notifier
  readonly ledgerWaker: LedgerWaker
  /** The next position in the stream of what lives in memory. */
  nextPosition(): number
}

export function createReadingServices(parts: ReadingParts): ReadingServices {
  const { notifier, ledgerWaker, unread } = parts
  return {
    roomReader: createRoomReader(parts),
    aliases: createAliases(parts),
    directory: createRoomDirectory(parts),
    typing: createTyping({ ...parts, changed: notifier.wakeRoom }),
    receipts: createReceipts({
      ...parts,
      waker: ledgerWaker,
      written({ by, event, isPublic, isForRoom, position }) {
        if (isForRoom) unread.read(by.userNid, event)
        if (isPublic) return ledgerWaker.wakeRoom(event.roomNid)
        ledgerWaker.rooms.record(event.roomNid, position)
        notifier.wakeUsers([by.userNid])
      },
    }),
  }
}
