import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, createRoom, login, openApi, register, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { fetchFile, uploadFile } from '../support/media.ts'
import { type Outcome, runHearth } from '../support/run-hearth.ts'
import { waitUntil } from '../support/wait.ts'
import { placeKey } from './kept-server.ts'

const PASSPHRASE = 'correct horse'
let folder: string
let place: string
let server: ChildServer
let api: Api
let alice: Account
let loggedOut: Account
let room: string
let media: string
/** Between the first message and the second. */
let between: number
const restored: ChildServer[] = []

const env = (dataDir: string) => ({
  HEARTH__SERVER_NAME: 'moments.test',
  HEARTH__DATA_DIR: dataDir,
  HEARTH__BACKUP__PLACE: place,
  HEARTH__BACKUP__POINT_IN_TIME: 'true',
  // Its Postgres takes more connections than usual.
  HEARTH__DATABASE__POOL_SIZE: '20',
  HEARTH__BACKUP__JOURNAL_MINUTES: '1440',
  HEARTH__BACKUP__PASSPHRASE: PASSPHRASE,
  HEARTH__LISTEN__PORT: '1',
  HEARTH__METRICS__PORT: '0',
})
const run = (words: string[], dataDir = join(server.dataDir, 'data')): Promise<Outcome> =>
  runHearth(words, { directory: folder, env: env(dataDir) })

const logIn = (system: string) => readdirSync(join(place, 'log', system)).map((name) => name.slice(0, 24))

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hearth-moments-'))
  place = join(folder, 'backups')
  await placeKey(place, PASSPHRASE)
  const { HEARTH__DATA_DIR: _, HEARTH__LISTEN__PORT: __, ...more } = env('')
  server = await startChildServer({ serverName: 'moments.test', env: more })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  loggedOut = await login(api, 'alice')
  room = await createRoom(api, alice.token)
  media = await uploadFile(server.baseUrl, alice.token, Buffer.from('a picture'), {})
  const made = await run(['backup'])
  expect(made, made.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('restore --to TIME') })
  await sendText(api, alice.token, room, 'first', 'first')
  between = Date.now() + 1
  await waitUntil('a moment later', () => Date.now() > between + 1)
  await sendText(api, alice.token, room, 'second', 'second')
  await api.call('POST', '/logout', { token: loggedOut.token })
  const taken = await run(['backup', 'journal'])
  expect(taken, taken.stderr).toMatchObject({ code: 0 })
  // What is not at the place is lost.
  await sendText(api, alice.token, room, 'third', 'third')
}, 120_000)
afterAll(async () => {
  await api.close()
  await server.dispose()
  for (const one of restored) await one.dispose()
  await rm(folder, { recursive: true, force: true })
})

async function textsAt(dataDir: string): Promise<{ texts: string[]; child: ChildServer }> {
  // Its own log would be the newest branch of the log at the place, which the next test goes along.
  const more = { HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8' }
  const child = await startChildServer({ serverName: 'moments.test', folder: dataDir, makesCluster: true, env: more })
  restored.push(child)
  const there = openApi(child.baseUrl)
  const { chunk } = await there.call('GET', `/rooms/${encodeURIComponent(room)}/messages?dir=b`, { token: alice.token })
  await sendText(there, alice.token, room, 'new', 'after the restore')
  await there.close()
  return { texts: chunk.flatMap(({ content }: { content: { body?: string } }) => content.body ?? []), child }
}

describe('hearth restore --to', () => {
  test('refuses a time before the copy, after the log, and none; and what is there already', async () => {
    const target = join(folder, 'refused/data')
    const to = (text: string) => run(['restore', '--to', text, '--even-if-running'], target)
    expect((await to('2020-01-01T00:00:00Z')).stderr).toContain(
      'no copy of the files of Postgres is from before that time',
    )
    expect((await to('tomorrow')).code).toBe(2)
    const late = await to(new Date(Date.now() + 3_600_000).toISOString())
    expect(late).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /the log at the place ends before that time, its last change is of 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z:/,
      ),
    })
    // Nothing of it is taken for a database.
    const started = await runHearth(['serve'], { directory: folder, env: env(target) })
    expect(started).toMatchObject({ code: 1, stderr: expect.stringContaining('a restore to a time was cut off') })
    expect((await run(['restore', '--to', 'latest', '--even-if-running'])).stderr).toContain('overwrites nothing')
  }, 180_000)

  test('brings the server back as it was between two messages', async () => {
    const target = join(folder, 'between')
    const words = ['restore', '--to', new Date(between).toISOString(), '--even-if-running']
    const back = await run(words, join(target, 'data'))
    expect(back, back.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('moments.test is back') })
    const { texts, child } = await textsAt(target)
    expect(texts).toEqual(['first'])
    const file = await fetchFile(`${child.baseUrl}/_matrix/client/v1/media/download/${media}`, { token: alice.token })
    expect(file.bytes.toString()).toBe('a picture')
    // A session that was logged out since stays so.
    const there = openApi(child.baseUrl)
    expect((await there.request('GET', '/account/whoami', { token: loggedOut.token })).status).toBe(401)
    await there.close()
  }, 180_000)

  test('or as it was at the end of the log, also after an attempt that was cut off', async () => {
    const target = join(folder, 'latest')
    const back = await run(['restore', '--to', 'latest', '--even-if-running'], join(target, 'data'))
    expect(back, back.stderr).toMatchObject({ code: 0 })
    expect((await textsAt(target)).texts).toEqual(['second', 'first'])
  }, 180_000)

  test('of a log with a piece that somebody put there or took away, brings back moments before it and refuses those after', async () => {
    const taken = await run(['backup', 'journal'])
    expect(taken, taken.stderr).toMatchObject({ code: 0 })
    const [system = ''] = readdirSync(join(place, 'log'))
    const names = readdirSync(join(place, 'log', system)).sort()
    const last = join(place, 'log', system, names.at(-1)!)
    const kept = readFileSync(last)
    const to = (text: string, target: string) =>
      run(['restore', '--to', text, '--even-if-running'], join(folder, target, 'data'))
    writeFileSync(last, readFileSync(join(place, 'log', system, names[0]!)))
    expect(await to('latest', 'forged')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the end of the log cannot be reached: .* was altered or damaged/),
    })
    const late = new Date(Date.now() + 3_600_000).toISOString()
    expect(await to(late, 'forged')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/breaks off before that time, its last change is of .*was altered or damaged/),
    })
    const back = await to(new Date(between).toISOString(), 'forged')
    expect(back, back.stderr).toMatchObject({ code: 0 })
    expect((await textsAt(join(folder, 'forged'))).texts).toEqual(['first'])
    // A hole is told from the end.
    rmSync(last)
    await sendText(api, alice.token, room, 'fourth', 'fourth')
    expect(await run(['backup', 'journal'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not at the place. Until the next backup'),
    })
    expect((await to('latest', 'hole')).stderr).toMatch(/cannot be reached: the piece at .* is not at the place/)
    writeFileSync(last, kept)
  }, 240_000)
})

test('a log that cannot be kept does not stop the server, is said, and begins anew with the next backup', async () => {
  const out = join(server.dataDir, 'data/postgres/cluster/hearth-wal-out')
  // As many as wait when nobody takes them away: Postgres drops them when it has the next one.
  for (let count = 0; count < 130; count++) writeFileSync(join(out, `waiting-${count}`), '')
  await run(['backup', 'journal'])
  expect(readdirSync(out).filter((name) => name.startsWith('waiting'))).toEqual([])
  await sendText(api, alice.token, room, 'full', 'goes on')
  const { code, stderr } = await run(['backup', 'journal'])
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('the log of Postgres is broken off: a part of it could not be put aside'),
  ])
  const [system = ''] = readdirSync(join(place, 'log'))
  const before = logIn(system).length
  for (let count = 0; count < 2; count++) {
    const made = await run(['backup', '--keep', ''])
    expect(made, made.stderr).toMatchObject({ code: 0 })
  }
  expect((await run(['backup', 'journal'])).code).toBe(0)
  // Two copies of the files are kept, and the log since the older.
  expect(readdirSync(join(place, 'bases'))).toHaveLength(2)
  expect(logIn(system).length).toBeLessThan(before + 3)
}, 240_000)
