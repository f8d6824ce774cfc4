import type { Reader, Tx } from '../db/db.ts'

// Table: device_list. Reads also key_signature and room_member.

/** Records a change of a user's devices or keys; the position is the new version of the list. Gives the previous version, 0 for the first. */
export async function recordDeviceListChange(tx: Tx, userNid: number, position: number): Promise<number> {
  const [row] = await tx.query<{ before: number | null }>(
    `INSERT INTO device_list (user_nid, position) VALUES ($1, $2)
     ON CONFLICT (user_nid) DO UPDATE SET position = EXCLUDED.position
     RETURNING (SELECT position FROM device_list WHERE user_nid = $1) AS before`,
    [userNid, position],
  )
  return row?.before ?? 0
}

/** The version of a user's list; 0 if no change was ever recorded. */
export async function deviceListVersion(reader: Reader, userNid: number): Promise<number> {
  const [row] = await reader.query<{ position: number }>('SELECT position FROM device_list WHERE user_nid = $1', [
    userNid,
  ])
  return row?.position ?? 0
}

/**
 * Whose keys changed after ledger position `after`, up to and with `upTo`: of the viewer, of those joined to one of the rooms, and
 * of those whose master key the viewer signed.
 */
export async function deviceListsChanged(
  reader: Reader,
  of: {
    readonly viewerNid: number
    readonly roomNids: readonly number[]
    readonly after: number
    readonly upTo: number
  },
): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>(
    `SELECT user_nid FROM device_list c WHERE position > $3 AND position <= $4 AND (
       user_nid = $1 OR EXISTS (
         SELECT FROM room_member m WHERE m.user_nid = c.user_nid AND m.room_nid = ANY($2::bigint[]) AND membership = 'join'
       ))
     UNION
     SELECT target_nid FROM key_signature WHERE signer_nid = $1 AND position > $3 AND position <= $4`,
    [of.viewerNid, of.roomNids, of.after, of.upTo],
  )
  return rows.map((row) => row.user_nid)
}
