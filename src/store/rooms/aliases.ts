import type { RoomAlias, RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: room_alias, room

export interface AliasRow {
  readonly alias: RoomAlias
  readonly room_nid: number
  readonly room_id: RoomId
  readonly creator_nid: number
}

const SELECT = 'SELECT alias, room_nid, room_id, creator_nid FROM room_alias JOIN room USING (room_nid)'

/** Those of the aliases that lead to a room. */
export function getAliases(reader: Reader, aliases: readonly RoomAlias[]): Promise<AliasRow[]> {
  return reader.query<AliasRow>(`${SELECT} WHERE alias = ANY($1::text[])`, [aliases])
}

export function getAliasesOfRoom(reader: Reader, roomNid: number): Promise<AliasRow[]> {
  return getAliasesOfRooms(reader, [roomNid])
}

export function getAliasesOfRooms(reader: Reader, roomNids: readonly number[]): Promise<AliasRow[]> {
  return reader.query<AliasRow>(`${SELECT} WHERE room_nid = ANY($1) ORDER BY created_ts, alias`, [roomNids])
}

/**
 * Reserves an alias for a room, which need not exist yet; false if the alias is taken.
 * An alias that was reserved before `staleBefore` for a room that was never created counts as free.
 */
export async function insertAlias(
  tx: Tx,
  alias: {
    readonly alias: RoomAlias
    readonly roomNid: number
    readonly creatorNid: number
    readonly ts: number
    readonly staleBefore: number
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO room_alias (alias, room_nid, creator_nid, created_ts) VALUES ($1, $2, $3, $4)
     ON CONFLICT (alias) DO UPDATE
     SET room_nid = EXCLUDED.room_nid, creator_nid = EXCLUDED.creator_nid, created_ts = EXCLUDED.created_ts
     WHERE room_alias.created_ts < $5 AND NOT EXISTS (SELECT FROM room WHERE room.room_nid = room_alias.room_nid)
     RETURNING alias`,
    [alias.alias, alias.roomNid, alias.creatorNid, alias.ts, alias.staleBefore],
  )
  return rows.length > 0
}

export async function deleteAlias(tx: Tx, alias: RoomAlias): Promise<void> {
  await tx.query('DELETE FROM room_alias WHERE alias = $1', [alias])
}

/** Points all aliases of a room to another room, or removes them. Gives the aliases. */
export async function redirectAliases(tx: Tx, roomNid: number, to: number | undefined): Promise<RoomAlias[]> {
  const rows = await tx.query<{ alias: RoomAlias }>(
    to === undefined
      ? 'DELETE FROM room_alias WHERE room_nid = $1 RETURNING alias'
      : 'UPDATE room_alias SET room_nid = $2 WHERE room_nid = $1 RETURNING alias',
    to === undefined ? [roomNid] : [roomNid, to],
  )
  return rows.map(({ alias }) => alias)
}
