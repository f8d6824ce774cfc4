import type { Reader, Tx } from '../db/db.ts'

// Table: list_acl

/** The globs that policy lists put into the ACL of a room. */
export async function findListAcl(reader: Reader, roomNid: number): Promise<string[]> {
  const [row] = await reader.query<{ denied: string }>('SELECT denied FROM list_acl WHERE room_nid = $1', [roomNid])
  return row === undefined ? [] : (JSON.parse(row.denied) as string[])
}

export async function setListAcl(tx: Tx, roomNid: number, denied: readonly string[]): Promise<void> {
  if (denied.length === 0) {
    await tx.query('DELETE FROM list_acl WHERE room_nid = $1', [roomNid])
    return
  }
  await tx.query(
    `INSERT INTO list_acl (room_nid, denied) VALUES ($1, $2)
     ON CONFLICT (room_nid) DO UPDATE SET denied = excluded.denied`,
    [roomNid, JSON.stringify(denied)],
  )
}
