import { ProtocolError } from '../../core/errors.ts'
import type { RoomId } from '../../core/ids.ts'
import { IGNORED_USER_LIST, ignoredIn } from '../../core/ignored-users.ts'
import type { JsonObject } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { PushRuleset } from '../../core/push/default-rules.ts'
import {
  deleteAccountData,
  findAccountData,
  measureAccountData,
  setAccountData,
} from '../../store/accounts/account-data.ts'
import { findIgnoredUserList, putIgnoredSenders } from '../../store/accounts/ignored-user-lists.ts'
import type { Database, Reader, Tx } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import { MAX_DELETED_ACCOUNT_DATA } from '../limits/tags.ts'
import { MAX_IGNORED_BEFORE, MAX_IGNORED_NOTED } from '../limits/unread.ts'
import { MAX_ACCOUNT_DATA_BYTES, MAX_ACCOUNT_DATA_BYTES_PER_USER, MAX_ACCOUNT_DATA_PER_USER } from '../limits.ts'
import type { PushedUser, PushRules } from '../push/rules.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'

/** Wakes a user's syncs after something of theirs was written to the ledger at a position. */
export interface Waker {
  wakeUsers(userNids: readonly number[], position: number): void
}

export interface AccountData {
  /** The content of a type in a user's account data, of a room or (undefined) of the account. @throws ProtocolError `M_NOT_FOUND` */
  get(user: PushedUser, roomId: RoomId | undefined, type: string): Promise<JsonObject | { global: PushRuleset }>
  /** As `get`; undefined if nothing is there. Push rules are left out. */
  find(userNid: number, roomId: RoomId | undefined, type: string): Promise<JsonObject | undefined>
  /**
   * @throws ProtocolError `M_BAD_JSON` (405) for a type that only the server writes, `M_TOO_LARGE`, `M_FORBIDDEN` for too many entries
   */
  set(userNid: number, roomId: RoomId | undefined, type: string, content: JsonObject): Promise<void>
  /**
   * Changes a piece by what is there when it is written; undefined leaves it as it is. @throws as `set`
   *
   * @param change called with undefined if nothing is there
   */
  change(
    userNid: number,
    roomId: RoomId,
    type: string,
    change: (before: JsonObject | undefined) => JsonObject | undefined,
  ): Promise<void>
  /** Deletes a piece, if it is there. @throws ProtocolError `M_BAD_JSON` (405) for a type that only the server writes */
  delete(userNid: number, roomId: RoomId | undefined, type: string): Promise<void>
}

/** `read_markers` and the endpoints of push rules write these. */
const OF_THE_SERVER = new Set(['m.fully_read', 'm.push_rules'])

function checkType(type: string): void {
  if (!OF_THE_SERVER.has(type)) return
  throw new ProtocolError('M_BAD_JSON', `${type} is written by the server alone.`, { status: 405 })
}

const isIgnoredUserList = (roomId: string, type: string): boolean => roomId === '' && type === IGNORED_USER_LIST

const NOBODY: ReadonlySet<string> = new Set()

async function noteIgnored(tx: Tx, userNid: number, content: JsonObject | undefined): Promise<void> {
  const list = await findIgnoredUserList(tx, userNid)
  const [before, after] = [ignoredIn(list?.content) ?? NOBODY, ignoredIn(content) ?? NOBODY]
  const added = [...after].filter((userId) => !before.has(userId)).slice(0, MAX_IGNORED_NOTED)
  const removed = [...before].filter((userId) => !after.has(userId)).slice(0, MAX_IGNORED_NOTED)
  await putIgnoredSenders(tx, userNid, { added, removed }, MAX_IGNORED_BEFORE)
}

/** What only reads account data. */
export function createAccountDataReader({
  db,
  pushRules,
}: {
  readonly db: Reader
  readonly pushRules: Pick<PushRules, 'ruleset'>
}): Pick<AccountData, 'get' | 'find'> {
  return {
    async get(user, roomId, type) {
      if (type === 'm.push_rules' && roomId === undefined) return { global: await pushRules.ruleset(user) }
      const content = await findAccountData(db, user.userNid, roomId ?? '', type)
      if (content === undefined) throw new ProtocolError('M_NOT_FOUND', 'Nothing is kept under this type.')
      return content
    },
    find: (userNid, roomId, type) => findAccountData(db, userNid, roomId ?? '', type),
  }
}

export function createAccountData(deps: {
  readonly db: Database
  readonly ledger: Ledger
  readonly notifier: Waker
  readonly pushRules: Pick<PushRules, 'ruleset'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'changed'>
  readonly bounds: BoundMetrics
}): AccountData {
  const { db, ledger, notifier, ignoredUsers, bounds } = deps
  const { get, find } = createAccountDataReader(deps)
  const turns = createKeyedQueue<string>()
  /** Writes in flight: the number of entries and bytes of each user. */
  const underWay = new Map<number, { pieces: number; bytes: number }>()

  function refused(errcode: 'M_TOO_LARGE' | 'M_FORBIDDEN', text: string): ProtocolError {
    bounds.reached('account data')
    return new ProtocolError(errcode, text)
  }

  /** Runs a write if it fits within the account's limits, together with all writes in flight. */
  async function withinBounds(userNid: number, roomId: string, type: string, text: string, write: () => Promise<void>) {
    const bytes = Buffer.byteLength(text) + Buffer.byteLength(type) + Buffer.byteLength(roomId)
    if (Buffer.byteLength(text) > MAX_ACCOUNT_DATA_BYTES) {
      throw refused('M_TOO_LARGE', `A piece of account data may have ${MAX_ACCOUNT_DATA_BYTES} bytes.`)
    }
    const together = underWay.get(userNid) ?? { pieces: 0, bytes: 0 }
    underWay.set(userNid, together)
    together.pieces += 1
    together.bytes += bytes
    // These are the sums at this moment. The query may not yet see a write that ends before it answers. Writes that begin later count
    // this one.
    const { pieces: piecesTogether, bytes: bytesTogether } = together
    try {
      const kept = await measureAccountData(db, userNid, roomId, type)
      const isNew = kept.of_piece === null
      if (isNew && kept.pieces + piecesTogether > MAX_ACCOUNT_DATA_PER_USER) {
        throw refused('M_FORBIDDEN', `An account may keep ${MAX_ACCOUNT_DATA_PER_USER} pieces of data.`)
      }
      const grows = bytes > (kept.of_piece ?? 0)
      if (grows && kept.bytes - (kept.of_piece ?? 0) + bytesTogether > MAX_ACCOUNT_DATA_BYTES_PER_USER) {
        throw refused(
          'M_TOO_LARGE',
          `An account may keep ${MAX_ACCOUNT_DATA_BYTES_PER_USER} bytes of data. Write {} over what is not needed any more.`,
        )
      }
      await write()
    } finally {
      together.pieces -= 1
      together.bytes -= bytes
      if (together.pieces === 0) underWay.delete(userNid)
    }
  }

  /** Writes of one piece run one after another, so that a change of it loses none. */
  const inTurn = <T>(userNid: number, roomId: string, type: string, work: () => Promise<T>) =>
    turns.run(JSON.stringify([userNid, roomId, type]), work)

  async function write(userNid: number, roomId: string, type: string, content: JsonObject): Promise<void> {
    const text = JSON.stringify(content)
    await withinBounds(userNid, roomId, type, text, () =>
      ledger.append(
        async (tx, position) => {
          if (isIgnoredUserList(roomId, type)) await noteIgnored(tx, userNid, content)
          await setAccountData(tx, { userNid, roomId, type, content: text, position })
        },
        (_, position) => written(userNid, roomId, type, position),
      ),
    )
  }

  /** Tells all who must know of a write that was committed. */
  function written(userNid: number, roomId: string, type: string, position: number): void {
    if (isIgnoredUserList(roomId, type)) ignoredUsers.changed(userNid)
    notifier.wakeUsers([userNid], position)
  }

  return {
    get,
    find,
    async set(userNid, roomId, type, content) {
      checkType(type)
      await inTurn(userNid, roomId ?? '', type, () => write(userNid, roomId ?? '', type, content))
    },
    change: (userNid, roomId, type, change) =>
      inTurn(userNid, roomId, type, async () => {
        const content = change(await findAccountData(db, userNid, roomId, type))
        if (content !== undefined) await write(userNid, roomId, type, content)
      }),
    async delete(userNid, roomId, type) {
      checkType(type)
      const place = { userNid, roomId: roomId ?? '', type }
      await ledger.append(
        async (tx, position) => {
          if (isIgnoredUserList(place.roomId, type)) await noteIgnored(tx, userNid, undefined)
          return deleteAccountData(tx, { ...place, position }, MAX_DELETED_ACCOUNT_DATA)
        },
        (_, position) => written(userNid, place.roomId, type, position),
      )
    },
  }
}
