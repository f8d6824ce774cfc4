import type { UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: account, matrix_user, profile_field, device

/** An account as operators see it. */
export interface SurveyedUser {
  readonly user_nid: number
  readonly user_id: UserId
  readonly is_guest: boolean
  readonly is_admin: boolean
  readonly is_deactivated: boolean
  readonly is_erased: boolean
  readonly appservice_id: string | null
  readonly is_locked: boolean
  readonly is_suspended: boolean
  readonly is_shadow_banned: boolean
  readonly valid_until: number | null
  readonly created_at: number
  readonly displayname: string | null
  readonly avatar_url: string | null
  readonly last_seen_at: number | null
}

const ORDERS = {
  name: 'user_id',
  is_guest: 'is_guest',
  admin: 'is_admin',
  deactivated: 'is_deactivated',
  displayname: 'displayname',
  avatar_url: 'avatar_url',
  creation_ts: 'created_at',
  last_seen_ts: 'last_seen_at',
  locked: 'is_locked',
  suspended: 'is_suspended',
  shadow_banned: 'is_shadow_banned',
} as const

export type UserOrder = keyof typeof ORDERS

/** Which accounts to list; an undefined property does not filter. */
export interface UserQuery {
  /** Part of the user id. */
  readonly userId: string | undefined
  /** Part of the user id's localpart or of the display name, in any case. */
  readonly name: string | undefined
  readonly isGuest: boolean | undefined
  readonly isAdmin: boolean | undefined
  readonly isDeactivated: boolean | undefined
  readonly isLocked: boolean | undefined
  readonly isSuspended?: boolean | undefined
  readonly isShadowBanned?: boolean | undefined
}

const FIELD = (name: string) =>
  `(SELECT value::json #>> '{}' FROM profile_field p WHERE p.user_nid = a.user_nid AND p.name = '${name}')`

const SURVEY = `SELECT a.user_nid, u.user_id, a.is_guest, a.is_admin, a.deactivated_at IS NOT NULL AS is_deactivated,
    a.erased_at IS NOT NULL AS is_erased, a.is_locked, a.is_suspended, a.is_shadow_banned, a.valid_until, a.appservice_id, a.created_at,
    ${FIELD('displayname')} AS displayname, ${FIELD('avatar_url')} AS avatar_url,
    (SELECT max(last_seen_at) FROM device d WHERE d.user_nid = a.user_nid) AS last_seen_at
  FROM account a JOIN matrix_user u USING (user_nid)`

const WANTED = `($1::text IS NULL OR position($1 IN u.user_id) > 0)
  AND ($2::text IS NULL OR position(lower($2) IN lower(split_part(u.user_id, ':', 1))) > 0
    OR position(lower($2) IN lower(${FIELD('displayname')})) > 0)
  AND ($3::boolean IS NULL OR a.is_guest = $3) AND ($4::boolean IS NULL OR a.is_admin = $4)
  AND ($5::boolean IS NULL OR (a.deactivated_at IS NOT NULL) = $5) AND ($6::boolean IS NULL OR a.is_locked = $6)
  AND ($7::boolean IS NULL OR a.is_suspended = $7) AND ($8::boolean IS NULL OR a.is_shadow_banned = $8)`

const valuesOf = (query: UserQuery) => {
  const { userId, name, isGuest, isAdmin, isDeactivated, isLocked, isSuspended, isShadowBanned } = query
  const values = [userId, name, isGuest, isAdmin, isDeactivated, isLocked, isSuspended, isShadowBanned]
  return values.map((value) => value ?? null)
}

/** A page of the accounts of this server. Reads all accounts: use a connection for long queries. */
export async function surveyUsers(
  reader: Reader,
  query: UserQuery,
  page: { readonly order: UserOrder; readonly isDescending: boolean; readonly from: number; readonly limit: number },
): Promise<{ readonly total: number; readonly users: SurveyedUser[] }> {
  const direction = page.isDescending ? 'DESC NULLS LAST' : 'ASC NULLS FIRST'
  const values = valuesOf(query)
  const [[count], users] = await Promise.all([
    reader.query<{ total: number }>(
      `SELECT count(*) AS total FROM account a JOIN matrix_user u USING (user_nid) WHERE ${WANTED}`,
      values,
    ),
    reader.query<SurveyedUser>(
      `SELECT * FROM (${SURVEY} WHERE ${WANTED}) found
       ORDER BY ${ORDERS[page.order]} ${direction}, user_id LIMIT $9 OFFSET $10`,
      [...values, page.limit, page.from],
    ),
  ])
  return { total: count?.total ?? 0, users }
}

export async function surveyUser(reader: Reader, userId: UserId): Promise<SurveyedUser | undefined> {
  const [row] = await reader.query<SurveyedUser>(`${SURVEY} WHERE u.user_id = $1`, [userId])
  return row
}

/** The number of users who were active after a time, without guests and users of application services. */
export async function countActiveUsers(reader: Reader, since: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    `SELECT count(*) AS count FROM account
     WHERE last_active_at > $1 AND NOT is_guest AND deactivated_at IS NULL AND appservice_id IS NULL`,
    [since],
  )
  return row?.count ?? 0
}

export interface DeviceSighting {
  readonly device_id: string
  readonly display_name: string | null
  readonly last_seen_at: number | null
  readonly last_seen_ip: string | null
  readonly last_seen_user_agent: string | null
}

/** The devices of a user, each with the time, address and user agent of its last request. */
export function listDeviceSightings(reader: Reader, userNid: number): Promise<DeviceSighting[]> {
  return reader.query<DeviceSighting>(
    `SELECT device_id, display_name, last_seen_at, last_seen_ip, last_seen_user_agent FROM device
     WHERE user_nid = $1 ORDER BY created_at, device_id`,
    [userNid],
  )
}
