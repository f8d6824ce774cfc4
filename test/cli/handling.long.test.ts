import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPTIONS } from '../../src/config/options.ts'
import { OWN_FILES } from '../../src/domain/oauth/archive/own-data.ts'
import { type Account, type Api, createRoom, login, openApi, PASSWORD, sendText } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { uploadFile } from '../support/media.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { S3_KEYS, type S3Service, startS3Service } from '../support/s3-service.ts'

let server: ChildServer
let api: Api
let s3: S3Service
let alice: Account
let room: string
let files: string[]

const environment = () => ({
  HEARTH__DATA_DIR: join(server.dataDir, 'data'),
  HEARTH__LISTEN__PORT: new URL(server.baseUrl).port,
  HEARTH__METRICS__PORT: '0',
  HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
  HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8',
  HEARTH__MEDIA__S3__ENDPOINT: s3.endpoint,
  HEARTH__MEDIA__S3__BUCKET: S3_KEYS.bucket,
  HEARTH__MEDIA__S3__ACCESS_KEY_ID: S3_KEYS.access_key_id,
  HEARTH__MEDIA__S3__SECRET_ACCESS_KEY: S3_KEYS.secret_access_key,
})

const hearth = (words: string, env: Record<string, string> = {}, input = '') =>
  runProgramHere(words.split(' '), { directory: server.dataDir, env: { ...environment(), ...env }, input })

async function done(words: string, env: Record<string, string> = {}, input = ''): Promise<string> {
  const { code, stdout, stderr } = await hearth(words, env, input)
  expect([code, stderr], words).toEqual([0, ''])
  return stdout
}

/** The files of an archive, by name. */
async function unpacked(path: string): Promise<Map<string, Buffer>> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-tar-'))
  execFileSync('tar', ['-xzf', path, '-C', directory])
  const names = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((each) => each.isFile())
  const found = new Map<string, Buffer>()
  for (const { parentPath, name } of names) {
    const full = join(parentPath, name)
    found.set(full.slice(directory.length + 1), await readFile(full))
  }
  await rm(directory, { recursive: true })
  return found
}

beforeAll(async () => {
  s3 = await startS3Service()
  server = await startChildServer({ env: { HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4' } })
  api = openApi(server.baseUrl)
  await done('user create alice', {}, `${PASSWORD}\n`)
  alice = await login(api, 'alice')
  room = await createRoom(api, alice.token, { name: 'canary-room-name' })
  await sendText(api, alice.token, room, 't1', 'canary-message')
  files = []
  for (const text of ['one', 'two', 'canary-file'])
    files.push(await uploadFile(server.baseUrl, alice.token, Buffer.from(text.repeat(1_000)), { type: 'text/plain' }))
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
  await s3?.close()
})

describe('beside a running server', () => {
  test('federation status and reset', async () => {
    expect(await done('federation status')).toMatch(/^All \d+ servers that this one knows have everything\.\n$/)
    expect(JSON.parse(await done('federation status --json'))).toEqual([])
    const { code, stderr } = await hearth('federation reset never.test')
    expect([code, stderr]).toEqual([1, expect.stringContaining('never heard of never.test')])
    expect(await hearth('federation reset')).toMatchObject({ code: 2 })
  })

  test('room stats, of one and of all', async () => {
    const stats = JSON.parse(await done(`room stats ${room} --json`))
    expect(stats).toMatchObject({ room_id: room, members: { join: 1 }, servers: 1 })
    expect(stats.types).toContainEqual({ type: 'm.room.message', count: 1 })
    expect(stats.events).toBeGreaterThan(5)
    expect(await done(`room stats ${room}`)).toMatch(/events +\d+, of these \d+ of state; 0\.0 MB/)
    expect(await done('room stats')).toContain(room)
  })

  test('config diff: from the defaults, and what a restart of the running server would change', async () => {
    expect(await done('config diff')).toMatch(/^passwords\.scrypt\.log2_cost: 4 {2}\(default: 17\)$/m)
    expect(await done('config diff')).not.toContain(S3_KEYS.secret_access_key.repeat(2))
    expect(await done('config diff')).toMatch(/^media\.s3\.secret_access_key: "\[hidden\]"/m)
    expect(await done('config diff --running')).toBe('The running server has what its configuration says.\n')
    await writeFile(
      join(server.dataDir, 'hearth.yaml'),
      'rate_limits: {message: {burst: 3}}\nsearch: {enabled: false}\n',
    )
    expect(await done('config diff --running')).toBe(
      'rate_limits.message.burst: 50 -> 3  (after SIGHUP)\nsearch.enabled: true -> false  (after a restart)\n',
    )
    await rm(join(server.dataDir, 'hearth.yaml'))
  })

  test('media verify finds what is missing and what is damaged', async () => {
    expect(await done('media verify')).toBe('3 good, 0 missing, 0 damaged\n')
    const stored = join(server.dataDir, 'data/media/files')
    const names = (await readdir(stored, { recursive: true, withFileTypes: true })).filter((each) => each.isFile())
    const [first, second] = names.map(({ parentPath, name }) => join(parentPath, name))
    const [one, two] = [await readFile(first!), await readFile(second!)]
    await rm(first!)
    await writeFile(second!, `x${two.toString().slice(1)}`)
    const { code, stdout } = await hearth('media verify')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^missing: [0-9a-f]{64} mxc:\/\/localhost\/\S+$/m)
    expect(stdout).toMatch(/^damaged: [0-9a-f]{64} mxc:\/\/localhost\/\S+$/m)
    expect(stdout).toContain('1 good, 1 missing, 1 damaged')
    await writeFile(first!, one)
    await writeFile(second!, two)
  })

  test('media move copies to S3 and back, goes on where it ended, and takes nothing away that is still in use', async () => {
    const refused = await hearth('media move --to s3 --remove')
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('still uses the files')])
    const first = await done('media move --to s3')
    expect(first).toContain('3 copied.')
    expect(first).toContain('set media.store to s3')
    expect(await done('media move --to s3')).toContain('3 already there.')
    expect(await done('media verify --store s3')).toBe('3 good, 0 missing, 0 damaged\n')
    // The configuration is ahead of the server that runs.
    const ahead = await hearth('media move --to s3 --remove', { HEARTH__MEDIA__STORE: 's3' })
    expect([ahead.code, ahead.stderr]).toEqual([2, expect.stringContaining('still uses the files')])
    expect(await done('media verify')).toBe('3 good, 0 missing, 0 damaged\n')
    expect(await readdir(join(server.dataDir, 'data/media/moving'))).toEqual([])
  })

  test('a damaged file is not copied', async () => {
    const stored = join(server.dataDir, 'data/media/files')
    const names = (await readdir(stored, { recursive: true, withFileTypes: true })).filter((each) => each.isFile())
    const path = join(names[0]!.parentPath, names[0]!.name)
    const whole = await readFile(path)
    await writeFile(path, 'other')
    const env = { HEARTH__MEDIA__S3__PREFIX: 'again/' }
    const { code, stdout } = await hearth('media move --to s3', env)
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^damaged: [0-9a-f]{64}\n(?:.|\n)*2 copied/)])
    await writeFile(path, whole)
    expect(await done('media move --to s3', env)).toMatch(/1 copied, 2 already there|2 already there, 1 copied/)
  })

  test('user export: all that is kept of a user, and no token', async () => {
    expect(await done('user export alice')).toMatch(/keeps of @alice:localhost, with 3 files\.\n$/)
    const path = join(server.dataDir, '_alice_localhost.tar.gz')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const found = await unpacked(path)
    const events = JSON.parse(found.get('events/0-0.json')!.toString())
    expect(events).toContainEqual(
      expect.objectContaining({ room_id: room, content: { msgtype: 'm.text', body: 'canary-message' } }),
    )
    expect(JSON.parse(found.get('account.json')!.toString())).toMatchObject({ user_id: '@alice:localhost' })
    for (const file of files) expect(found.get(`media/${file.split('/')[1]}`)?.length).toBeGreaterThan(2_000)
    for (const { name } of OWN_FILES) expect([...found.keys()]).toContain(name)
    const listed = execFileSync('tar', ['-tvzf', path, 'account.json']).toString()
    expect(listed).toContain(` ${new Date().getFullYear()}-`)
    expect([...found.values()].some((bytes) => bytes.includes(alice.token))).toBe(false)
    expect((await hearth('user export nobody')).code).toBe(1)
    expect((await readdir(server.dataDir)).filter((name) => name.includes('nobody'))).toEqual([])
  })

  test('the bundle has what helps, and no secret, no message and no token', async () => {
    const secrets: Record<string, string> = {}
    // Those that this server has already, or cannot have: several nodes need a database that is not their own.
    const isOutside = (key: string) => ['database.', 'media.s3', 'cluster.'].some((part) => key.startsWith(part))
    for (const { env, schema, key, holds } of OPTIONS)
      if (schema.secret && holds === undefined && !isOutside(key)) secrets[env] = canaryFor(schema.pattern, key)
    secrets.HEARTH__IDENTITY__SMS__HTTP__URL = 'https://sms.test/canary-in-a-path/send?key=canary-in-a-query'
    secrets.HEARTH__IDENTITY__SMS__HTTP__HEADERS = 'Authorization: Bearer canary-in-a-header'
    secrets.HEARTH__IDENTITY__SMS__HTTP__BODY = '{"token": "canary-in-a-body"}'
    secrets.HEARTH__OUTBOUND__PROXY = 'http://hearth:canary-of-the-proxy@proxy.test:3128'
    const provider = "{id: x, name: X, issuer: 'https://x.test', client_id: c, client_secret: canary-in-a-list}"
    await writeFile(join(server.dataDir, 'hearth.yaml'), `sso: {providers: [${provider}]}\n`)
    // The token in a path that nobody serves, and a body that is none: what makes the log speak.
    await api.request('GET', `/rooms/canary-path/state?access_token=${alice.token}`)
    const { code, stdout, stderr } = await hearth('support-bundle bundle.tar.gz', secrets)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('bundle.tar.gz')
    const found = await unpacked(join(server.dataDir, 'bundle.tar.gz'))
    expect([...found.keys()].sort()).toEqual(
      [
        'configuration-changes.json',
        'configuration-problems.json',
        'configuration.txt',
        'database.json',
        'metrics.txt',
        'recent-errors.json',
        'versions.json',
      ].map((name) => `hearth-support/${name}`),
    )
    const text = Buffer.concat([...found.values()]).toString()
    expect(text).toContain('hearth_sync_seconds_count')
    const database = JSON.parse(found.get('hearth-support/database.json')!.toString())
    expect(database.tables.length).toBeGreaterThan(30)
    expect(database.slow_statements.source).toMatch(/^pg_stat_(statements|activity)$/)
    expect(found.get('hearth-support/configuration.txt')!.toString()).toContain('[hidden]')
    expect(text).not.toMatch(/canary/)
    expect(text).not.toContain(alice.token)
    expect(text).not.toContain(S3_KEYS.secret_access_key + S3_KEYS.bucket)
    expect(text).not.toContain(PASSWORD)
    expect(text).not.toContain(room)
    expect(text).not.toContain('alice')
    expect((await hearth('support-bundle bundle.tar.gz.part/x')).code).toBe(1)
    await rm(join(server.dataDir, 'hearth.yaml'))
  })
})

/** A value that the option takes and that can be found again. */
function canaryFor(pattern: string | undefined, key: string): string {
  const plain = `canary-${key.replaceAll('.', '-').replaceAll('_', '-')}-of-thirty-two-letters`
  return pattern === undefined || new RegExp(pattern).test(plain) ? plain : 'canary0canary0canary0canary0canary'
}

describe('without a running server', () => {
  beforeAll(() => server.kill('SIGTERM'), 30_000)

  test('the same is done, or it is said that it needs one', async () => {
    expect(await done('federation status')).toContain('have everything')
    expect(await done('federation reset other.test')).toContain('No server runs now')
    const inUse = { HEARTH__MEDIA__STORE: 's3' }
    expect(await done('media move --to s3 --remove', inUse)).toBe('3 already there.\n')
    expect((await hearth('media verify --store directory')).stdout).toContain('0 good, 3 missing')
    expect(await done('media move --to directory', inUse)).toContain('3 copied.')
    expect(await done('media verify')).toBe('3 good, 0 missing, 0 damaged\n')
    expect((await hearth('support-bundle bundle.tar.gz')).stderr).toContain('is there already')
    expect(await done(`room stats ${room}`)).toContain('m.room.message 1')
    const { code, stderr } = await hearth('config diff --running')
    expect([code, stderr]).toEqual([1, expect.stringContaining('No server runs')])
    const bundle = await hearth('support-bundle second.tar.gz')
    expect([bundle.code, bundle.stderr]).toEqual([0, expect.stringContaining('metrics.txt')])
    const found = await unpacked(join(server.dataDir, 'second.tar.gz'))
    expect(found.get('hearth-support/metrics.txt')!.toString()).toBe('This could not be collected: no server runs\n')
    expect(JSON.parse(found.get('hearth-support/database.json')!.toString()).tables.length).toBeGreaterThan(30)
  })
})
