import type { UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'

// Tables: account, matrix_user, profile_field, device; read: dehydrated_device

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

const DISPLAYNAME = `${decodable('p.value')} #>> '{}'`
const FIELD = (name: string) =>
  `(SELECT ${decodable('value')} #>> '{}' FROM profile_field p WHERE p.user_nid = a.user_nid AND p.name = '${name}')`

const ORDERS = {
  name: 'u.user_id',
  is_guest: 'a.is_guest',
  admin: 'a.is_admin',
  deactivated: 'a.deactivated_at IS NOT NULL',
  displayname: DISPLAYNAME,
  avatar_url: FIELD('avatar_url'),
  creation_ts: 'a.created_at',
  last_seen_ts: 'd.last_seen_at',
  locked: 'a.is_locked',
  suspended: 'a.is_suspended',
  shadow_banned: 'a.is_shadow_banned',
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

const SURVEY = `SELECT a.user_nid, u.user_id, a.is_guest, a.is_admin, a.deactivated_at IS NOT NULL AS is_deactivated,
    a.erased_at IS NOT NULL AS is_erased, a.is_locked, a.is_suspended, a.is_shadow_banned, a.valid_until, a.appservice_id, a.created_at,
    ${FIELD('displayname')} AS displayname, ${FIELD('avatar_url')} AS avatar_url,
    (SELECT max(last_seen_at) FROM device d WHERE d.user_nid = a.user_nid) AS last_seen_at
  FROM account a JOIN matrix_user u USING (user_nid)`

/** The conditions of a query; `n` is the number of its parameter. */
const CONDITIONS: { readonly [part in keyof UserQuery]-?: (n: string) => string } = {
  userId: (n) => `position(${n} IN u.user_id) > 0`,
  // Users of other servers are not looked at. A name is decoded only if its JSON contains the text, or an escape.
  name: (n) =>
    `(position(lower(${n}) IN lower(split_part(u.user_id, ':', 1))) > 0 OR a.user_nid IN (
       SELECT user_nid FROM profile_field p WHERE name = 'displayname'
         AND (position(lower(${n}) IN lower(value)) > 0 OR position('\\' IN value) > 0) AND position(lower(${n}) IN lower(${DISPLAYNAME})) > 0))`,
  isGuest: (n) => `a.is_guest = ${n}`,
  isAdmin: (n) => `a.is_admin = ${n}`,
  isDeactivated: (n) => `(a.deactivated_at IS NOT NULL) = ${n}`,
  isLocked: (n) => `a.is_locked = ${n}`,
  isSuspended: (n) => `a.is_suspended = ${n}`,
  isShadowBanned: (n) => `a.is_shadow_banned = ${n}`,
}

/** A page of the accounts of this server, in one pass over all of them: use a reader of whole tables. */
export async function surveyUsers(
  reader: Reader,
  query: UserQuery,
  page: { readonly order: UserOrder; readonly isDescending: boolean; readonly from: number; readonly limit: number },
): Promise<{ readonly total: number; readonly users: SurveyedUser[] }> {
  const direction = page.isDescending ? 'DESC NULLS LAST' : 'ASC NULLS FIRST'
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const conditions = given.map(([part], index) => CONDITIONS[part as keyof UserQuery](`$${index + 3}`))
  const isNamed = page.order === 'displayname'
  const names = isNamed ? `LEFT JOIN profile_field p ON p.user_nid = a.user_nid AND p.name = 'displayname'` : ''
  const seen =
    page.order === 'last_seen_ts'
      ? 'LEFT JOIN (SELECT user_nid, max(last_seen_at) AS last_seen_at FROM device GROUP BY user_nid) d ON d.user_nid = a.user_nid'
      : ''
  const rows = await reader.query<{ total: number } & { [column in keyof SurveyedUser]: SurveyedUser[column] | null }>(
    `WITH found AS MATERIALIZED (
       SELECT a.user_nid, u.user_id, ${ORDERS[page.order]} AS place FROM account a JOIN matrix_user u USING (user_nid) ${names} ${seen}
       ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}),
     page AS (SELECT * FROM found ORDER BY place ${direction}, user_id LIMIT $1 OFFSET $2)
     SELECT s.*, counted.total FROM (SELECT count(*) AS total FROM found) counted
     LEFT JOIN page ON true LEFT JOIN LATERAL (${SURVEY} WHERE a.user_nid = page.user_nid) s ON true
     ORDER BY page.place ${direction}, page.user_id`,
    [page.limit, page.from, ...given.map(([, value]) => value)],
  )
  return {
    total: rows[0]!.total,
    users: rows.flatMap(({ total: _, ...row }) => (row.user_nid === null ? [] : [row as SurveyedUser])),
  }
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
  readonly dehydrated: boolean
}

/** The devices of a user, each with the time, address and user agent of its last request. */
export function listDeviceSightings(reader: Reader, userNid: number): Promise<DeviceSighting[]> {
  return reader.query<DeviceSighting>(
    `SELECT device_id, display_name, last_seen_at, last_seen_ip, last_seen_user_agent,
       EXISTS (SELECT FROM dehydrated_device h WHERE h.user_nid = d.user_nid AND h.device_id = d.device_id) AS dehydrated
     FROM device d WHERE user_nid = $1 ORDER BY created_at, device_id`,
    [userNid],
  )
}
