import type { ServerName } from '../core/ids.ts'
import type { Reader, Tx } from './db.ts'

// Table: server_key

export interface ServerKeyRow {
  readonly key_id: string
  readonly public_key: string
  readonly valid_until: number
  readonly is_old: boolean
}

export function findServerKeys(reader: Reader, server: ServerName): Promise<readonly ServerKeyRow[]> {
  return reader.query<ServerKeyRow>(
    'SELECT key_id, public_key, valid_until, is_old FROM server_key WHERE server_name = $1',
    [server],
  )
}

/** Keeps these and, of those that were there, the ones that count for longest: `atMost` together. */
export async function saveServerKeys(
  tx: Tx,
  server: ServerName,
  keys: readonly ServerKeyRow[],
  atMost: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO server_key (server_name, key_id, public_key, valid_until, is_old)
     SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::boolean[])
     ON CONFLICT (server_name, key_id) DO UPDATE
       SET public_key = excluded.public_key, valid_until = excluded.valid_until, is_old = excluded.is_old`,
    [
      server,
      keys.map(({ key_id }) => key_id),
      keys.map(({ public_key }) => public_key),
      keys.map(({ valid_until }) => valid_until),
      keys.map(({ is_old }) => is_old),
    ],
  )
  await tx.query(
    `DELETE FROM server_key WHERE server_name = $1 AND key_id IN
       (SELECT key_id FROM server_key WHERE server_name = $1 ORDER BY valid_until DESC, key_id OFFSET $2)`,
    [server, atMost],
  )
}
