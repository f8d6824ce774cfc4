import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { identityChores } from '../../src/domain/identity/identity-services.ts'
import { startJanitor } from '../../src/workers/janitor.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const HOUR = 3_600_000

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

it('forgets transaction ids after a day, however many, and none before', async () => {
  const { db } = database
  const now = 1_000 * HOUR
  const use = (from: number, to: number, at: number) =>
    db.tx((tx) =>
      tx.query(
        `INSERT INTO client_txn (token_nid, txn_hash, event_nid, created_ts)
         SELECT 1, 't' || n, n, $3::bigint FROM generate_series($1::int, $2::int) n`,
        [from, to, at],
      ),
    )
  await use(1, 5_000, now - 40 * HOUR)
  await use(5_001, 5_100, now - 24 * HOUR)
  await use(5_101, 5_110, now)
  const janitor = startJanitor({ db, clock: { now: () => now }, log: pino({ level: 'silent' }) })
  expect(await janitor.tidy()).toBe(5_000)
  expect(await janitor.tidy()).toBe(0)
  const [left] = await db.query('SELECT count(*) AS count, min(event_nid) AS first FROM client_txn')
  expect(left).toEqual({ count: 110, first: 5_001 })
  await janitor.close()
})

it('removes branches of room state that nothing refers to', async () => {
  const { db } = database
  await db.query(
    `INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable,
       state_chain, state_seq) VALUES (1, '!room', '12', 5, '{}', 1, 1, 1, 0, 0, 3)`,
  )
  await db.query('INSERT INTO state_chain SELECT 1, n, n - 1, 2 FROM generate_series(1, 4) n')
  await db.query('INSERT INTO state_change SELECT 1, n, s, s, s FROM generate_series(0, 4) n, generate_series(1, 3) s')
  await db.query(
    `INSERT INTO event (event_nid, room_nid, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, event_id, type, json)
     VALUES (1, 1, 1, 1, 0, 1, 2, '$event', 't', '{}')`,
  )
  await db.query('UPDATE state_chain SET parent_chain = 1 WHERE chain = 4')
  const janitor = startJanitor({ db, clock: { now: () => 0 }, log: pino({ level: 'silent' }) })
  // Chain 1 is an event's, and 4 the newest; 2 and 3 go with three changes each.
  expect(await janitor.tidy()).toBe(8)
  const left = await db.query('SELECT DISTINCT chain FROM state_change ORDER BY chain')
  expect(left).toEqual([{ chain: 0 }, { chain: 1 }, { chain: 4 }])
  await janitor.close()
})

it('removes OpenID tokens, short-term keys and tokens of the identity service when they are over', async () => {
  const { db } = database
  const now = 10_000 * HOUR
  await db.query("INSERT INTO matrix_user (user_id) VALUES ('@a:localhost')")
  await db.query('INSERT INTO account (user_nid, created_at) SELECT user_nid, 0 FROM matrix_user')
  await db.query(
    `INSERT INTO openid_token SELECT sha256(n::text::bytea), user_nid, n FROM account, unnest($1::bigint[]) n`,
    [[now - HOUR, now, now + HOUR]],
  )
  await db.query("INSERT INTO identity_account VALUES ('@a:localhost', 0)")
  await db.query(
    `INSERT INTO identity_token (token_hash, user_id, created_at, used_at)
     SELECT sha256(n::text::bytea), '@a:localhost', 0, n FROM unnest($1::bigint[]) n`,
    [[now - 800 * HOUR, now - 722 * HOUR, now - 720 * HOUR, now]],
  )
  await db.query(
    `INSERT INTO identity_ephemeral_key (public_key, created_at, expires_at)
     VALUES ('over', 0, $1), ('not yet', 0, $1 + 1), ('never', 0, NULL)`,
    [now],
  )
  const chores = identityChores(loadConfig({ directory: '/' }).config)
  const janitor = startJanitor({ db, clock: { now: () => now }, log: pino({ level: 'silent' }), chores })
  await janitor.tidy()
  const left = async (sql: string) => (await db.query<{ value: unknown }>(sql)).map(({ value }) => value)
  expect(await left('SELECT expires_at AS value FROM openid_token')).toEqual([now + HOUR])
  expect(await left('SELECT used_at AS value FROM identity_token ORDER BY 1')).toEqual([now - 720 * HOUR, now])
  expect(await left('SELECT public_key AS value FROM identity_ephemeral_key ORDER BY 1')).toEqual(['never', 'not yet'])
  await janitor.close()
})
