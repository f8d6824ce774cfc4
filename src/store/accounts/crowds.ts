import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: account, matrix_user, device

export interface CrowdMember {
  readonly user_nid: number
  readonly user_id: UserId
}

export interface CrowdCriteria {
  readonly userIds: readonly UserId[] | undefined
  /** A pattern of the localpart, as LIKE has it, in lower case. */
  readonly like: string | undefined
  /** Milliseconds. */
  readonly registeredAfter: number | undefined
  readonly registeredBefore: number | undefined
  /** The address at which one of their devices was seen last. */
  readonly seenAt: string | undefined
}

/** Active accounts of people who are no administrators, the oldest first. Reads all accounts: use a connection for long queries. */
export function findCrowd(reader: Reader, criteria: CrowdCriteria, atMost: number): Promise<CrowdMember[]> {
  return reader.query<CrowdMember>(
    `SELECT a.user_nid, u.user_id FROM account a JOIN matrix_user u USING (user_nid)
     WHERE NOT a.is_admin AND a.deactivated_at IS NULL AND a.appservice_id IS NULL
       AND ($1::text[] IS NULL OR u.user_id = ANY($1)) AND ($2::bigint IS NULL OR a.created_at >= $2)
       AND ($3::bigint IS NULL OR a.created_at <= $3)
       AND ($4::text IS NULL OR EXISTS (SELECT FROM device d WHERE d.user_nid = a.user_nid AND d.last_seen_ip = $4))
       AND ($5::text IS NULL OR lower(substr(split_part(u.user_id, ':', 1), 2)) LIKE $5)
     ORDER BY a.created_at, a.user_nid LIMIT $6`,
    [
      criteria.userIds ?? null,
      criteria.registeredAfter ?? null,
      criteria.registeredBefore ?? null,
      criteria.seenAt ?? null,
      criteria.like ?? null,
      atMost,
    ],
  )
}

/** Restrains accounts; undefined leaves a property unchanged. Who has become an administrator since stays as they are. */
export function restrainCrowd(
  tx: Tx,
  userNids: readonly number[],
  wish: { readonly isLocked?: boolean; readonly isSuspended?: boolean; readonly isShadowBanned?: boolean },
): Promise<{ user_nid: number }[]> {
  return tx.query(
    `UPDATE account SET is_locked = coalesce($2, is_locked), is_suspended = coalesce($3, is_suspended),
       is_shadow_banned = coalesce($4, is_shadow_banned)
     WHERE user_nid = ANY($1::bigint[]) AND deactivated_at IS NULL AND NOT is_admin RETURNING user_nid`,
    [userNids, wish.isLocked ?? null, wish.isSuspended ?? null, wish.isShadowBanned ?? null],
  )
}
