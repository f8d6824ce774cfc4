import { ProtocolError } from '../../core/errors.ts'
import type { RoomId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { countAccountData, findAccountData, setAccountData } from '../../store/account-data.ts'
import type { Database } from '../../store/db.ts'
import type { Ledger } from '../../store/ledger.ts'
import { MAX_ACCOUNT_DATA_PER_USER } from '../limits.ts'

/** Wakes the syncs of users about something of theirs that was written at a position of the ledger. */
export interface Waker {
  wakeUsers(userNids: readonly number[], position: number): void
}

export interface AccountData {
  /** What a user keeps under a type, for a room or (undefined) for the account. @throws ProtocolError `M_NOT_FOUND` */
  get(userNid: number, roomId: RoomId | undefined, type: string): Promise<JsonObject>
  /** @throws ProtocolError `M_BAD_JSON` (405) for a type that the server itself writes */
  set(userNid: number, roomId: RoomId | undefined, type: string, content: JsonObject): Promise<void>
}

/** Written by `read_markers` and by the endpoints of push rules. */
const OF_THE_SERVER = new Set(['m.fully_read', 'm.push_rules'])

export function createAccountData(deps: {
  readonly db: Database
  readonly ledger: Ledger
  readonly notifier: Waker
}): AccountData {
  const { db, ledger, notifier } = deps

  /** Counted without a lock: a burst may go a little beyond. */
  async function checkRoomLeft(userNid: number, roomId: string, type: string): Promise<void> {
    if ((await countAccountData(db, userNid)) < MAX_ACCOUNT_DATA_PER_USER) return
    if ((await findAccountData(db, userNid, roomId, type)) !== undefined) return
    throw new ProtocolError('M_FORBIDDEN', `An account may keep ${MAX_ACCOUNT_DATA_PER_USER} pieces of data.`)
  }

  return {
    async get(userNid, roomId, type) {
      const content = await findAccountData(db, userNid, roomId ?? '', type)
      if (content === undefined) throw new ProtocolError('M_NOT_FOUND', 'Nothing is kept under this type.')
      return content
    },
    async set(userNid, roomId, type, content) {
      if (OF_THE_SERVER.has(type)) {
        throw new ProtocolError('M_BAD_JSON', `${type} is written by the server alone.`, { status: 405 })
      }
      const room = roomId ?? ''
      await checkRoomLeft(userNid, room, type)
      const text = JSON.stringify(content)
      await ledger.append(
        (tx, position) => setAccountData(tx, { userNid, roomId: room, type, content: text, position }),
        (_, position) => notifier.wakeUsers([userNid], position),
      )
    },
  }
}
