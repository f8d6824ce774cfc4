import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: federation_edu, federation_message

export interface KeptEdu {
  readonly edu_nid: number
  /** Canonical JSON. */
  readonly json: string
}

/** Keeps EDUs for servers, in the order given, until {@link removeEdus}. */
export async function keepEdus(
  tx: Tx,
  edus: readonly { readonly server: ServerName; readonly json: string }[],
  now: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO federation_edu (server, json, created_at)
     SELECT server, json, $3 FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS edu (server, json, place) ORDER BY place`,
    [edus.map(({ server }) => server), edus.map(({ json }) => json), now],
  )
}

/** Keeps the same EDUs for some servers; they replace unsent ones about the same user. */
export async function keepNewestEdus(
  tx: Tx,
  edu: {
    readonly servers: readonly ServerName[]
    readonly aboutNid: number
    readonly jsons: readonly string[]
    readonly now: number
  },
): Promise<void> {
  await tx.query('DELETE FROM federation_edu WHERE about_nid = $1 AND server = ANY($2::text[])', [
    edu.aboutNid,
    edu.servers,
  ])
  await tx.query(
    `INSERT INTO federation_edu (server, about_nid, json, created_at)
     SELECT server, $2, json, $4 FROM unnest($1::text[]) AS server,
       unnest($3::text[]) WITH ORDINALITY AS edu (json, place) ORDER BY place`,
    [edu.servers, edu.aboutNid, edu.jsons, edu.now],
  )
}

export function keptEdusFor(reader: Reader, server: ServerName, atMost: number): Promise<KeptEdu[]> {
  return reader.query('SELECT edu_nid, json FROM federation_edu WHERE server = $1 ORDER BY edu_nid LIMIT $2', [
    server,
    atMost,
  ])
}

export async function removeEdus(tx: Tx, nids: readonly number[]): Promise<void> {
  await tx.query('DELETE FROM federation_edu WHERE edu_nid = ANY($1::bigint[])', [nids])
}

export async function serversWithEdus(reader: Reader): Promise<ServerName[]> {
  const rows = await reader.query<{ server: ServerName }>('SELECT DISTINCT server FROM federation_edu')
  return rows.map(({ server }) => server)
}

/** Removes undelivered EDUs from before a time, and gives how many. */
export async function forgetEdus(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM federation_edu WHERE edu_nid IN (SELECT edu_nid FROM federation_edu WHERE created_at < $1 LIMIT $2)
     RETURNING edu_nid`,
    [before, atMost],
  )
  return rows.length
}

/** Removes the ids of messages from before a time, and gives how many. */
export async function forgetMessages(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM federation_message WHERE message_hash IN
       (SELECT message_hash FROM federation_message WHERE received_at < $1 LIMIT $2)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
