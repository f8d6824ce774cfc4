import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: server_key_answer

export interface KeyAnswerRow {
  readonly server_name: ServerName
  readonly answer: string
  readonly fetched_at: number
  readonly valid_until: number
}

export function findKeyAnswers(reader: Reader, servers: readonly ServerName[]): Promise<readonly KeyAnswerRow[]> {
  return reader.query<KeyAnswerRow>(
    'SELECT server_name, answer, fetched_at, valid_until FROM server_key_answer WHERE server_name = ANY($1)',
    [servers],
  )
}

export async function saveKeyAnswer(tx: Tx, row: KeyAnswerRow): Promise<void> {
  await tx.query(
    `INSERT INTO server_key_answer (server_name, answer, fetched_at, valid_until) VALUES ($1, $2, $3, $4)
     ON CONFLICT (server_name) DO UPDATE
       SET answer = excluded.answer, fetched_at = excluded.fetched_at, valid_until = excluded.valid_until`,
    [row.server_name, row.answer, row.fetched_at, row.valid_until],
  )
}

/** If there are more than `kept` answers, removes those that expire first, and gives how many. */
export async function forgetOldestKeyAnswers(tx: Tx, kept: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM server_key_answer WHERE server_name IN
       (SELECT server_name FROM server_key_answer ORDER BY valid_until DESC, server_name OFFSET $1 LIMIT $2)
     RETURNING 1 AS one`,
    [kept, atMost],
  )
  return rows.length
}

/** Removes answers that expired before a time, and gives how many. */
export async function forgetKeyAnswers(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM server_key_answer WHERE server_name IN
       (SELECT server_name FROM server_key_answer WHERE valid_until < $1 LIMIT $2) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
