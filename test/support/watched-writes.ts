import pg from 'pg'
import type { TestServer } from './server.ts'

/**
 * What the server notes by itself: when a device and an account were here, how far events went to other servers and to pushers, which words
 * they have, and that this node of a cluster runs.
 */
const IS_SIGHTING = `TG_TABLE_NAME IN ('device', 'pusher', 'node') AND TG_OP = 'UPDATE'
  OR TG_TABLE_NAME IN ('federation_sent', 'federation_forward', 'push_sent', 'push_gateway', 'search_text', 'search_position',
    'directory_user', 'directory_word', 'directory_position', 'open_room')
  OR TG_TABLE_NAME = 'account' AND TG_OP = 'UPDATE' AND to_jsonb(NEW) - 'last_active_at' = to_jsonb(OLD) - 'last_active_at'`

/** Tables whose rows have changed since it was asked last, in words: `event: rows 1`. */
export interface WatchedWrites {
  read(): Promise<string[]>
  close(): Promise<void>
}

/** Has the database note every row that is written, in the transaction that writes it: what is rolled back leaves no note. */
export async function watchWrites({ database }: Pick<TestServer, 'database'>): Promise<WatchedWrites> {
  const client = new pg.Client(database.connection)
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  )
  await client.query(`
    CREATE SCHEMA watch;
    CREATE TABLE watch.note (id bigserial PRIMARY KEY, name text, rows int);
    CREATE FUNCTION watch.write_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NOT (${IS_SIGHTING}) THEN
        INSERT INTO watch.note (name, rows)
        VALUES (TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 ELSE 0 END);
      END IF;
      RETURN NULL;
    END $$;`)
  // One after another: whoever locks all tables at once and a transaction of the server may wait for each other.
  for (const { name } of rows) {
    await client.query(
      `CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON "${name}" FOR EACH ROW EXECUTE FUNCTION watch.write_note()`,
    )
  }
  let last = 0
  async function read(): Promise<string[]> {
    const { rows: notes } = await client.query<{ last: string; what: string }>({
      name: 'notes',
      text: `SELECT max(id) AS last, name || CASE WHEN sum(rows) = 0 THEN ': updates' ELSE ': rows ' || sum(rows) END AS what
             FROM watch.note WHERE id > $1 GROUP BY name HAVING sum(rows) <> 0 OR bool_and(rows = 0)`,
      values: [last],
    })
    last = Math.max(last, ...notes.map((note) => Number(note.last)))
    return notes.map(({ what }) => what)
  }
  return { read, close: () => client.end() }
}
