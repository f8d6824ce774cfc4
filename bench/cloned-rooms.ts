import pg from 'pg'
import { BY_NID } from '../src/store/rooms/room-purge.ts'
import type { Target } from './target.ts'

/** What stands for the number of each room in the texts of the room that is cloned. */
export const ROOM_NUMBER = '{number}'

/** The tables that say all of a room in which nobody has read, reacted or relayed anything. */
const CLONED = ['room', 'event', 'state_key', 'state_change', 'room_member'] as const
/** Made again by the server when they are due, or of no use to a sync. */
const LEFT_OUT: readonly string[] = ['state_checkpoint', 'open_room', 'published_room']

/** Columns with numbers of events, alone and in lists. */
const EVENT_NUMBERS = new Set(['event_nid', 'last_nid', 'replaces_nid', 'redacted_by', 'stream_pos', 'changed_at'])
const EVENT_LISTS = new Set(['extremities', 'auth_nids'])

/**
 * Makes many rooms like one that was made through the public interface, by copying its rows: sixty thousand joins would take minutes. The
 * copies have their own numbers and ids; only the hashes and references within the events' JSON are still those of the original. The rooms
 * lie mixed on disk, as if they had grown side by side. The server sees them after its next start.
 */
export async function cloneRoom(target: Target, roomId: string, count: number): Promise<void> {
  const connection = target.database()
  if (connection === undefined) throw new Error('rooms are cloned in the database: name it with --database-url')
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query('SELECT room_nid FROM room WHERE room_id = $1', [roomId])
    const roomNid = Number(rows[0]?.room_nid)
    await assertPlain(client, roomNid)
    await client.query(
      `CREATE TEMP TABLE clone ON COMMIT DROP AS
       WITH own AS (SELECT min(event_nid) AS first, max(event_nid) AS last FROM event WHERE room_nid = ${roomNid}),
         every AS (SELECT max(event_nid) AS last FROM event)
       SELECT n, nextval('room_nid_seq') AS nid, n || '-' || room_id AS word,
         '!clone' || n || substr(room_id, 2) AS room_id, every.last - own.first + 1 + (n - 1) * (own.last - own.first + 1) AS ahead
       FROM generate_series(1, ${count}) AS n, own, every, room WHERE room.room_nid = ${roomNid}`,
    )
    for (const table of CLONED) await cloneRows(client, table, roomNid, roomId)
    await client.query('COMMIT')
    await client.query('ANALYZE')
    await client.query('CHECKPOINT')
  } finally {
    await client.end()
  }
}

async function cloneRows(client: pg.Client, table: string, roomNid: number, roomId: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`,
    [table],
  )
  const columns: string[] = rows.map(({ name }) => name)
  const order = columns.includes('event_nid') ? 'o.event_nid, ' : ''
  await client.query(
    `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${columns.map((name) => copyOf(name, roomId)).join(', ')}
     FROM ${table} o, clone WHERE o.room_nid = ${roomNid} ORDER BY ${order}clone.n`,
  )
}

function copyOf(column: string, roomId: string): string {
  if (column === 'room_nid') return 'clone.nid'
  if (column === 'room_id') return 'clone.room_id'
  if (column === 'event_id')
    return `'$' || translate(rtrim(encode(sha256((clone.word || o.event_id)::bytea), 'base64'), '='), '+/', '-_')`
  if (column === 'json') return `replace(replace(o.json, '${roomId}', clone.room_id), '${ROOM_NUMBER}', clone.n::text)`
  // The number of the clone is longer or shorter than what stands for it.
  if (column === 'content_place') return `CASE WHEN strpos(o.json, '${ROOM_NUMBER}') = 0 THEN o.content_place END`
  // 0 stands for no event.
  if (EVENT_NUMBERS.has(column)) return `CASE o.${column} WHEN 0 THEN 0 ELSE o.${column} + clone.ahead END`
  if (EVENT_LISTS.has(column))
    return `CASE WHEN o.${column} IS NOT NULL THEN ARRAY(SELECT nid + clone.ahead FROM unnest(o.${column}) AS nid) END`
  return `o.${column}`
}

/** @throws if the room has rows that a copy would lack */
async function assertPlain(client: pg.Client, roomNid: number): Promise<void> {
  for (const table of BY_NID) {
    if ((CLONED as readonly string[]).includes(table) || LEFT_OUT.includes(table)) continue
    const { rows } = await client.query(`SELECT 1 FROM ${table} WHERE room_nid = $1 LIMIT 1`, [roomNid])
    if (rows.length > 0) throw new Error(`a room with rows in ${table} cannot be cloned`)
  }
}
