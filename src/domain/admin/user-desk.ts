import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { normaliseAddress } from '../../core/threepid.ts'
import { listAccountData } from '../../store/accounts/account-data.ts'
import { lockAccount, setAdmin, setPasswordHash } from '../../store/accounts/accounts.ts'
import { findExternalAccount, listExternalIds } from '../../store/accounts/external-ids.ts'
import { deleteLoginTokensOf } from '../../store/accounts/login-tokens.ts'
import {
  type SurveyedUser,
  surveyUser,
  surveyUsers,
  type UserOrder,
  type UserQuery,
} from '../../store/accounts/user-survey.ts'
import { findThreepidOwner, listUserThreepids } from '../../store/accounts/user-threepids.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import { surveys, wholeTables } from '../../store/db/whole-tables.ts'
import { getMemberships, getRooms, type Membership } from '../../store/rooms/rooms.ts'
import type { Deactivation } from '../accounts/deactivation.ts'
import type { Passwords } from '../accounts/passwords.ts'
import type { UnbindResult } from '../contact/identity-server.ts'
import { createDeviceDesk, type DeviceDesk, type DeviceDeskParts } from './device-desk.ts'
import { activeAccount, deactivated, localAccount } from './local-account.ts'
import type { Operator } from './operator.ts'

export interface UsersPage {
  readonly from?: number | undefined
  readonly limit?: number | undefined
  readonly order_by?: UserOrder | undefined
  readonly dir?: 'f' | 'b' | undefined
}

/** The local accounts, for operators. Functions throw `M_NOT_FOUND` and `M_INVALID_PARAM` as `localAccount` does. */
export interface UserDesk extends DeviceDesk {
  list(query: UserQuery, page: UsersPage): Promise<JsonObject>
  get(userId: UserId): Promise<JsonObject>
  /** At most a hundred accounts with a text in their name, as older tools read them: no password hashes. */
  search(term: string): Promise<JsonObject[]>
  /** The account's numeric id, by which other tables refer to it. */
  numberOf(userId: UserId): Promise<number>
  /**
   * Sets an account's password and, unless told otherwise, ends all its sessions. @throws ProtocolError `M_WEAK_PASSWORD`,
   * `M_USER_DEACTIVATED`
   */
  setPassword(userId: UserId, password: string, logoutDevices: boolean): Promise<void>
  /** Deactivates an account. A second call changes nothing, except that it may erase the user. */
  deactivate(userId: UserId, erase: boolean): Promise<UnbindResult>
  /**
   * Opens a deactivated account again, as `Deactivation.reactivate`. @throws ProtocolError `M_WEAK_PASSWORD`, 409 `M_UNKNOWN` while its
   * deactivation is not finished, and if another request has just opened it with another password
   */
  reactivate(userId: UserId, password: string): Promise<void>
  isAdmin(userId: UserId): Promise<boolean>
  /** @throws ProtocolError `M_FORBIDDEN` if operators would remove their own right, `M_USER_DEACTIVATED` */
  setAdmin(by: Operator, userId: UserId, isAdmin: boolean): Promise<void>
  /** The rooms of a local or remote user, as far as this server knows. */
  memberships(userId: UserId): Promise<{ readonly roomId: RoomId; readonly membership: Membership }[]>
  accountData(userId: UserId): Promise<JsonObject>
  byThreepid(medium: string, address: string): Promise<UserId | undefined>
  byExternalId(provider: string, externalId: string): Promise<UserId | undefined>
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000

function openedByAnother(userId: UserId): ProtocolError {
  const error = `Another request has just opened the account ${userId} again, and its password counts. Set yours if that is what you want.`
  return new ProtocolError('M_UNKNOWN', error, { status: 409 })
}

export function createUserDesk(
  deps: DeviceDeskParts & {
    readonly passwords: Passwords
    readonly deactivation: Pick<Deactivation, 'deactivate' | 'reactivate'>
  },
): UserDesk {
  const { config, db, passwords } = deps
  const deviceDesk = createDeviceDesk(deps)
  const account = (userId: UserId) => localAccount(db, userId, config.server_name)
  const active = (userId: UserId) => activeAccount(db, userId, config.server_name)

  return {
    async list(query, page) {
      const { from = 0, limit = DEFAULT_LIMIT, order_by: order = 'name', dir } = page
      const size = Math.min(limit, MAX_LIMIT)
      const wanted = { order, isDescending: dir === 'b', from, limit: size }
      const { total, users } = await surveyUsers(wholeTables(db), query, wanted)
      const end = from + users.length
      return { users: users.map(userView), total, ...(end < total ? { next_token: String(end) } : {}) }
    },
    async search(name) {
      const wanted = { name, userId: undefined, isGuest: undefined, isAdmin: undefined, isDeactivated: undefined }
      const page = { order: 'name', isDescending: false, from: 0, limit: DEFAULT_LIMIT } as const
      const { users } = await surveyUsers(surveys(db), { ...wanted, isLocked: undefined }, page)
      return users.map((user) => ({
        name: user.user_id,
        is_guest: user.is_guest,
        admin: user.is_admin,
        user_type: null,
      }))
    },
    numberOf: async (userId) => (await account(userId)).user_nid,
    async get(userId) {
      const { user_nid } = await account(userId)
      const [user, threepids, externalIds] = await Promise.all([
        surveyUser(db, userId),
        listUserThreepids(db, user_nid),
        listExternalIds(db, user_nid),
      ])
      return {
        ...userView(user!),
        expiration_ts: user!.valid_until,
        // What people accepted is the identity service's, and no notices ask for it.
        consent_version: null,
        consent_ts: null,
        consent_server_notice_sent: null,
        threepids: threepids.map((threepid) => ({ ...threepid })),
        external_ids: externalIds.map(({ provider, subject }) => ({ auth_provider: provider, external_id: subject })),
      }
    },
    async setPassword(userId, password, logoutDevices) {
      const { user_nid } = await active(userId)
      passwords.checkNew(password)
      const hash = await passwords.hash(password)
      await db.tx(async (tx) => {
        if ((await lockAccount(tx, user_nid))?.deactivated_at !== null) throw deactivated(userId)
        await setPasswordHash(tx, user_nid, hash)
        await deleteLoginTokensOf(tx, user_nid)
      })
      if (logoutDevices) await deviceDesk.logOut(userId)
    },
    async deactivate(userId, erase) {
      const { user_nid } = await account(userId)
      return deps.deactivation.deactivate({ userId, userNid: user_nid }, { erase, idServer: undefined })
    },
    async reactivate(userId, password) {
      const { user_nid } = await account(userId)
      passwords.checkNew(password)
      const hash = await passwords.hash(password)
      if (await deps.deactivation.reactivate({ userId, userNid: user_nid }, hash)) return
      const { password_hash } = await active(userId)
      if (!(await passwords.verify(password, password_hash))) throw openedByAnother(userId)
    },
    isAdmin: async (userId) => (await account(userId)).is_admin,
    async setAdmin(by, userId, isAdmin) {
      const { user_nid } = await active(userId)
      if (!isAdmin && by.requester?.userNid === user_nid) {
        throw new ProtocolError('M_FORBIDDEN', 'Administrators cannot take this from themselves: ask another one.')
      }
      await db.tx(async (tx) => {
        if ((await lockAccount(tx, user_nid))?.deactivated_at !== null) throw deactivated(userId)
        await setAdmin(tx, user_nid, isAdmin)
      })
    },
    ...deviceDesk,
    async memberships(userId) {
      const userNid = (await findUserNids(db, [userId])).get(userId)
      if (userNid === undefined) return []
      const rows = await getMemberships(db, userNid)
      const rooms = await getRooms(
        db,
        rows.map(({ room_nid }) => room_nid),
      )
      const ids = new Map(rooms.map(({ room_nid, room_id }) => [room_nid, room_id]))
      return rows.flatMap(({ room_nid, membership }) => {
        const roomId = ids.get(room_nid)
        return roomId === undefined ? [] : [{ roomId, membership }]
      })
    },
    async accountData(userId) {
      const global: Record<string, JsonObject> = {}
      const rooms: Record<string, Record<string, JsonObject>> = {}
      for (const { room_id, type, content } of await listAccountData(db.bulk, (await account(userId)).user_nid)) {
        if (room_id === '') global[type] = content
        else rooms[room_id] = { ...rooms[room_id], [type]: content }
      }
      return { account_data: { global, rooms } }
    },
    byThreepid: async (medium, address) =>
      (await findThreepidOwner(db, medium, normaliseAddress(medium, address)))?.user_id,
    byExternalId: async (provider, externalId) => (await findExternalAccount(db, provider, externalId))?.user_id,
  }
}

function userView(user: SurveyedUser): JsonObject {
  return {
    name: user.user_id,
    displayname: user.displayname,
    avatar_url: user.avatar_url,
    is_guest: user.is_guest,
    admin: user.is_admin,
    deactivated: user.is_deactivated,
    erased: user.is_erased,
    shadow_banned: user.is_shadow_banned,
    locked: user.is_locked,
    suspended: user.is_suspended,
    user_type: null,
    appservice_id: user.appservice_id,
    creation_ts: user.created_at,
    last_seen_ts: user.last_seen_at,
  }
}
