import type { ClientMetadata } from '../../core/oauth/client-metadata.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: oauth_client, oauth_session

export interface ClientRow {
  readonly client_id: string
  /** JSON */
  readonly metadata: string
  readonly created_at: number
}

export async function findClient(reader: Reader, clientId: string): Promise<ClientRow | undefined> {
  const [row] = await reader.query<ClientRow>(
    'SELECT client_id, metadata, created_at FROM oauth_client WHERE client_id = $1',
    [clientId],
  )
  return row
}

export async function findClientByDigest(reader: Reader, digest: Buffer): Promise<ClientRow | undefined> {
  const [row] = await reader.query<ClientRow>(
    'SELECT client_id, metadata, created_at FROM oauth_client WHERE digest = $1',
    [digest],
  )
  return row
}

/** How many clients nobody has used yet, of this network and of all; at most so many are counted. */
export async function countUnusedClients(
  reader: Reader,
  network: string,
  atMost: number,
): Promise<{ readonly own: number; readonly all: number }> {
  const [row] = await reader.query<{ own: number; all: number }>(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM oauth_client WHERE used_at IS NULL AND network = $1 LIMIT $2) o)::int AS own,
       (SELECT count(*) FROM (SELECT 1 FROM oauth_client WHERE used_at IS NULL LIMIT $2) a)::int AS all`,
    [network, atMost],
  )
  return row!
}

/** Stores a client; one with the same metadata stays as it is. Gives the id that counts. */
export async function insertClient(
  tx: Tx,
  client: {
    readonly clientId: string
    readonly digest: Buffer
    readonly metadata: ClientMetadata
    readonly network: string
    readonly createdAt: number
  },
): Promise<ClientRow> {
  const [row] = await tx.query<ClientRow>(
    `INSERT INTO oauth_client (client_id, digest, metadata, network, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest RETURNING client_id, metadata, created_at`,
    [client.clientId, client.digest, JSON.stringify(client.metadata), client.network, client.createdAt],
  )
  return row!
}

/** Removes so many of the oldest clients that nobody has used, registered before a moment. Gives how many. */
export async function deleteUnusedClients(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM oauth_client WHERE client_id IN (
       SELECT client_id FROM oauth_client WHERE used_at IS NULL AND created_at < $1
       ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** How many clients there are; at most so many are counted. */
export async function countClients(reader: Reader, atMost: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM (SELECT 1 FROM oauth_client LIMIT $1) c',
    [atMost],
  )
  return row!.count
}

/**
 * Removes so many of those clients that nobody has a session of, the longest unused first. Those of which somebody was asked since a moment
 * stay. Gives how many.
 */
export async function deleteIdleClients(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM oauth_client WHERE client_id IN (
       SELECT client_id FROM oauth_client c
       WHERE coalesce(used_at, created_at) < $1 AND NOT EXISTS (SELECT 1 FROM oauth_session s WHERE s.client_id = c.client_id)
       ORDER BY coalesce(used_at, created_at) LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** Notes that somebody signed in with a client. */
export async function markClientUsed(tx: Tx, clientId: string, now: number): Promise<void> {
  await tx.query('UPDATE oauth_client SET used_at = $2, network = NULL WHERE client_id = $1', [clientId, now])
}

/** Removes clients that nobody used in time, and those without sessions whose last sign-in is long ago. Gives how many. */
export async function forgetClients(
  tx: Tx,
  before: { readonly unused: number; readonly idle: number },
  atMost: number,
): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM oauth_client WHERE client_id IN (
       SELECT client_id FROM oauth_client c
       WHERE ((used_at IS NULL AND created_at < $1) OR used_at < $2)
         AND NOT EXISTS (SELECT 1 FROM oauth_session s WHERE s.client_id = c.client_id)
       LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING 1 AS one`,
    [before.unused, before.idle, atMost],
  )
  return rows.length
}
