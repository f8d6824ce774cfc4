import { ProtocolError } from '../../core/errors.ts'
import type { RoomId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { accountDataOf, replaceAccountData, usersWithRoomSettings } from '../../store/accounts/account-data.ts'
import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import { MAX_ACCOUNT_DATA_BYTES } from '../limits.ts'
import type { PushRuleEdits } from '../push/rule-edits.ts'
import type { PushRules } from '../push/rules.ts'
import type { SettingsCarrier } from '../rooms/act/upgrade/successions.ts'
import type { AccountData, Waker } from './account-data.ts'

/** How often direct chats are changed again because the user changed them at the same time. */
const MAX_ATTEMPTS = 4

/** Copies what users set for a room to the room that replaces it: tags, push rules, and that it is a direct chat. */
export function createRoomSettings(parts: {
  readonly db: Database
  readonly ledger: Ledger
  readonly notifier: Waker
  readonly accountData: Pick<AccountData, 'set'>
  readonly pushRules: Pick<PushRules, 'hasOwn'>
  readonly pushRuleEdits: Pick<PushRuleEdits, 'copyRoom'>
}): SettingsCarrier {
  const { db, ledger, notifier, accountData, pushRules, pushRuleEdits } = parts

  async function copyTags(userNid: number, from: RoomId, to: RoomId): Promise<void> {
    const rows = await accountDataOf(
      db,
      userNid,
      [from, to].map((room_id) => ({ room_id, type: 'm.tag' })),
    )
    const before = rows.find(({ room_id }) => room_id === from)
    if (before && hasTags(before.content) && !rows.some(({ room_id }) => room_id === to)) {
      await accountData.set(userNid, to, 'm.tag', before.content)
    }
  }

  async function copyDirect(userNid: number, from: RoomId, to: RoomId): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const [row] = await accountDataOf(db, userNid, [{ room_id: '', type: 'm.direct' }])
      const next = row && withRoom(row.content, from, to)
      if (row?.json === undefined || next === undefined) return
      const content = JSON.stringify(next)
      if (Buffer.byteLength(content) > MAX_ACCOUNT_DATA_BYTES) return
      const place = { userNid, roomId: '', type: 'm.direct', before: row.json, content }
      const isWritten = await ledger.append(
        (tx, position) => replaceAccountData(tx, { ...place, position }),
        (_, position) => notifier.wakeUsers([userNid], position),
      )
      if (isWritten) return
    }
  }

  return {
    async among(users, roomId) {
      const nids = users.map(({ userNid }) => userNid)
      const found = new Set(await usersWithRoomSettings(db, nids, roomId))
      return users.filter(({ userNid }) => found.has(userNid) || pushRules.hasOwn(userNid))
    },
    async carry(user, from, to) {
      await passOverLimits(copyTags(user.userNid, from, to))
      await copyDirect(user.userNid, from, to)
      await passOverLimits(pushRuleEdits.copyRoom(user, from, to))
    },
  }
}

/** A user who has reached a limit of their account keeps what they have. */
async function passOverLimits(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
  })
}

const hasTags = ({ tags }: JsonObject): boolean => isObject(tags) && Object.keys(tags).length > 0

/** `m.direct` (rooms by user) with a room beside each mention of another; undefined if nothing changes. */
function withRoom(direct: JsonObject, from: RoomId, to: RoomId): JsonObject | undefined {
  const lacks = (rooms: JsonValue | undefined): rooms is JsonValue[] =>
    Array.isArray(rooms) && rooms.includes(from) && !rooms.includes(to)
  if (!Object.values(direct).some(lacks)) return undefined
  return Object.fromEntries(
    Object.entries(direct).map(([user, rooms]) => [user, lacks(rooms) ? [...rooms, to] : rooms]),
  )
}
