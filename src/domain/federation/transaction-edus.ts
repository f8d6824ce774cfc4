import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import type { KeyedQueue } from '../../core/keyed-queue.ts'
import type { Database } from '../../store/db/db.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { createHeldReceipts, type HeldReceipts } from './held-receipts.ts'
import type { ServerAccess } from './server-access.ts'

/** Processes the content of an EDU: `{edu_type, content}`. */
export type EduHandler = (origin: ServerName, content: JsonObject) => Promise<void>

/** The EDUs of other servers' transactions. */
export interface TransactionEdus {
  /** Processes one. A malformed EDU, or one of an unknown type, has no effect. @throws ProtocolError 503 */
  take(origin: ServerName, edu: JsonValue): Promise<void>
  /** Receipts that wait for the resync of their room. */
  readonly heldReceipts: HeldReceipts
}

export interface TransactionEduParts {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly partialStateRooms: Pick<PartialStateRooms, 'all'>
  readonly access: ServerAccess
  readonly edus: Readonly<Record<string, EduHandler>>
  readonly log: Pick<Logger, 'error'>
}

/** @param turns runs holding and the end of holding one after another for a room */
export function createTransactionEdus(parts: TransactionEduParts, turns: KeyedQueue<number>): TransactionEdus {
  const { db, registry, access, partialStateRooms, edus, log } = parts
  const heldReceipts = createHeldReceipts({
    db,
    registry,
    access,
    partialStateRooms,
    turns,
    take: (origin, content) => handle(origin, 'm.receipt', async () => content),
  })

  async function handle(origin: ServerName, type: string, due: () => Promise<JsonObject>): Promise<void> {
    try {
      await edus[type]!(origin, await due())
    } catch (err) {
      if (!(err instanceof ProtocolError)) log.error({ err, origin, type }, 'an EDU could not be taken in')
      else if (err.status === 503) throw err
    }
  }

  return {
    heldReceipts,
    async take(origin, edu) {
      const { edu_type: type, content } = isObject(edu) ? edu : {}
      if (typeof type !== 'string' || !Object.hasOwn(edus, type) || !isObject(content)) return
      await handle(origin, type, async () => (type === 'm.receipt' ? heldReceipts.hold(origin, content) : content))
    },
  }
}
