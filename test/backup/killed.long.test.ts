import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openRestoreTarget } from '../../src/store/backup/restore-target.ts'
import { login, sendText } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { startServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

const ROWS = 150_000
const KILLS = Number(process.env.KILLS ?? 10)

let kept: KeptServer

beforeAll(async () => {
  kept = await startKeptServer()
  await kept.server.database.db.tx((tx) =>
    tx.query(
      `INSERT INTO federation_txn (txn_hash, answer, received_at)
       SELECT sha256(n::text::bytea), repeat(md5(n::text), 5), n FROM generate_series(1, ${ROWS}) AS n`,
    ),
  )
}, 120_000)
afterAll(() => kept.close())

const environment = (more: Readonly<Record<string, string>>) => ({
  PATH: process.env.PATH ?? '',
  HEARTH__SERVER_NAME: 'kept.test',
  HEARTH__LISTEN__PORT: '1',
  ...more,
})

/** Runs the program and kills it after a time, unless it has ended by then. Gives its exit code, or null. */
async function killed(words: readonly string[], env: Readonly<Record<string, string>>, afterMs: number) {
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/main.js'), ...words], { env: environment(env) })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const timer = setTimeout(() => child.kill('SIGKILL'), afterMs)
  const code = await ended
  clearTimeout(timer)
  return code
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

test('kill -9 amid a backup: the server is unharmed, and half a backup counts as none', async () => {
  const { server, api, alice, roomId, place, run } = kept
  const env = { HEARTH__DATABASE__URL: server.database.url, HEARTH__DATA_DIR: server.config.data_dir }
  const wholeMs = await timed(() => killed(['backup', place], env, 600_000))
  let cut = 0
  for (let kill = 0; kill < KILLS; kill++) {
    if ((await killed(['backup', place], env, randomInt(200, Math.ceil(wholeMs) + 200))) === null) cut++
    await sendText(api, alice.token, roomId, `kill ${kill}`, 'still here')
    const list = JSON.parse((await run(['backup', 'list', place, '--json'])).stdout) as { id: string }[]
    for (const { id } of list.slice(-1))
      expect(await run(['backup', 'verify', place, '--id', id])).toMatchObject({ code: 0 })
  }
  expect(cut).toBeGreaterThan(0)
  // A killed client may hold its lock until Postgres notices.
  await waitUntil('a backup', async () => (await run(['backup', place, '--keep', '1d'])).code === 0)
  expect(await run(['backup', 'verify', place])).toMatchObject({ code: 0 })
  expect(JSON.parse((await run(['backup', 'list', place, '--json'])).stdout)).toHaveLength(1)
})

test('kill -9 amid a restore: nothing serves half of it, and the next try ends with the whole, and what ended since', async () => {
  const { place, run, api } = kept
  const { token, deviceId } = await login(api, 'alice')
  expect(await run(['backup', place])).toMatchObject({ code: 0 })
  await api.call('POST', '/logout', { token })
  expect(await run(['backup', 'journal', place])).toMatchObject({ code: 0 })
  let cut = 0
  for (let round = 0; cut < KILLS; round++) {
    const database = await createTestDatabase(true)
    const env = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: `${kept.place}-killed-${round}` }
    let state = 'empty'
    while (state !== 'used' && cut < KILLS + round) {
      const code = await killed(['restore', place], env, randomInt(300, 4_000))
      const target = await openRestoreTarget(database.connection)
      state = (await target.state().finally(target.close)).kind
      if (code === 0) expect(state).toBe('used')
      else cut++
      if (state !== 'begun') continue
      const start = startServer({ server_name: 'kept.test' as never }, { database })
      await expect(start).rejects.toThrow('This database cannot be used')
    }
    if (state !== 'used') {
      const last = await run(['restore', place], { ...env, HEARTH__LISTEN__PORT: '1' })
      expect(last, last.stderr).toMatchObject({ code: 0 })
    }
    const [row] = await database.db.query<{ rows: number; members: number; indexes: number }>(
      `SELECT (SELECT count(*) FROM federation_txn) AS rows, (SELECT count(*) FROM room_member) AS members,
         (SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
          WHERE c.relnamespace = 'public'::regnamespace) AS indexes`,
    )
    const [original] = await kept.server.database.db.query(
      `SELECT ${ROWS}::bigint AS rows, (SELECT count(*) FROM room_member) AS members,
         (SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
          WHERE c.relnamespace = 'public'::regnamespace) AS indexes`,
    )
    expect(row).toEqual(original)
    const ended = await database.db.query('SELECT 1 FROM device WHERE device_id = $1', [deviceId])
    expect(ended).toEqual([])
    const off = await database.db.query(`SELECT 1 FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'`)
    expect(off).toEqual([])
    await database.drop()
  }
})
