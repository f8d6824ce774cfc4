import type { RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: policy_list

export interface PolicyListRow {
  readonly room_id: RoomId
  readonly added_by: string
  readonly added_at: number
}

export function listPolicyLists(reader: Reader): Promise<PolicyListRow[]> {
  return reader.query<PolicyListRow>('SELECT room_id, added_by, added_at FROM policy_list ORDER BY added_at, room_id')
}

export async function hasPolicyLists(reader: Reader): Promise<boolean> {
  return (await reader.query('SELECT 1 AS one FROM policy_list LIMIT 1')).length > 0
}

export async function insertPolicyList(tx: Tx, row: PolicyListRow): Promise<void> {
  await tx.query(
    'INSERT INTO policy_list (room_id, added_by, added_at) VALUES ($1, $2, $3) ON CONFLICT (room_id) DO NOTHING',
    [row.room_id, row.added_by, row.added_at],
  )
}

/** False if it was none. */
export async function deletePolicyList(tx: Tx, roomId: RoomId): Promise<boolean> {
  return (await tx.query('DELETE FROM policy_list WHERE room_id = $1 RETURNING 1 AS one', [roomId])).length > 0
}
