import type { Reader, Tx } from '../db/db.ts'

// Table: server_day

/** Notes that the server runs today, and forgets all but the newest days. */
export async function noteServerDay(tx: Tx, day: number, kept: number): Promise<void> {
  await tx.query('INSERT INTO server_day (day) VALUES ($1) ON CONFLICT (day) DO NOTHING', [day])
  await tx.query(
    'DELETE FROM server_day WHERE day <= (SELECT day FROM server_day ORDER BY day DESC OFFSET $1 LIMIT 1)',
    [kept],
  )
}

/** The day since which the server has run on so many whole days before today; undefined if it has not. */
export async function dayBefore(reader: Reader, today: number, days: number): Promise<number | undefined> {
  const [row] = await reader.query<{ day: number }>(
    'SELECT day FROM server_day WHERE day < $1 ORDER BY day DESC OFFSET $2 LIMIT 1',
    [today, days - 1],
  )
  return row?.day
}
