import { groupBy } from '../../core/group-by.ts'
import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: server_key

export interface ServerKeyRow {
  readonly server_name: ServerName
  readonly key_id: string
  readonly public_key: string
  readonly valid_until: number
  readonly is_old: boolean
}

export async function findServerKeys(
  reader: Reader,
  servers: readonly ServerName[],
): Promise<Map<ServerName, ServerKeyRow[]>> {
  const rows = await reader.query<ServerKeyRow>(
    'SELECT server_name, key_id, public_key, valid_until, is_old FROM server_key WHERE server_name = ANY($1::text[])',
    [servers],
  )
  return groupBy(rows, ({ server_name }) => server_name)
}

/** Stores keys. Of each server `atMost` keys stay, those that are valid longest. */
export async function saveServerKeys(tx: Tx, rows: readonly ServerKeyRow[], atMost: number): Promise<void> {
  await tx.query(
    `INSERT INTO server_key (server_name, key_id, public_key, valid_until, is_old)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[])
     ON CONFLICT (server_name, key_id) DO UPDATE
       SET public_key = excluded.public_key, valid_until = excluded.valid_until, is_old = excluded.is_old`,
    [
      rows.map(({ server_name }) => server_name),
      rows.map(({ key_id }) => key_id),
      rows.map(({ public_key }) => public_key),
      rows.map(({ valid_until }) => valid_until),
      rows.map(({ is_old }) => is_old),
    ],
  )
  await tx.query(
    `DELETE FROM server_key k USING (
       SELECT server_name, key_id, row_number() OVER (PARTITION BY server_name ORDER BY valid_until DESC, key_id) AS place
       FROM server_key WHERE server_name = ANY($1::text[])) placed
     WHERE place > $2 AND k.server_name = placed.server_name AND k.key_id = placed.key_id`,
    [[...new Set(rows.map(({ server_name }) => server_name))], atMost],
  )
}

/** If there are keys of more than `kept` servers, removes those of the servers whose keys expire first. Gives the number of servers. */
export async function forgetServerKeys(tx: Tx, kept: number, atMost: number): Promise<number> {
  const rows = await tx.query<{ readonly server_name: ServerName }>(
    `SELECT server_name FROM server_key GROUP BY server_name
     ORDER BY max(valid_until) DESC, server_name OFFSET $1 LIMIT $2`,
    [kept, atMost],
  )
  const servers = rows.map(({ server_name }) => server_name)
  if (servers.length > 0) await tx.query('DELETE FROM server_key WHERE server_name = ANY($1::text[])', [servers])
  return servers.length
}
