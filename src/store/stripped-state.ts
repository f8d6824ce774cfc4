import type { EventId } from '../core/ids.ts'
import type { JsonObject } from '../core/json.ts'
import type { Reader, Tx } from './db.ts'

// Table: stripped_state

export async function getStrippedState(reader: Reader, eventId: EventId): Promise<JsonObject[]> {
  const [row] = await reader.query<{ state: string }>('SELECT state FROM stripped_state WHERE event_id = $1', [eventId])
  return row ? (JSON.parse(row.state) as JsonObject[]) : []
}

export async function putStrippedState(tx: Tx, eventId: EventId, state: readonly JsonObject[]): Promise<void> {
  await tx.query(
    'INSERT INTO stripped_state (event_id, state) VALUES ($1, $2) ON CONFLICT (event_id) DO UPDATE SET state = EXCLUDED.state',
    [eventId, JSON.stringify(state)],
  )
}
