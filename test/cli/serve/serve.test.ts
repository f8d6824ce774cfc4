import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { selfSigned } from '../../support/certificate.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { freePort } from '../../support/free-port.ts'
import { PROJECT_ROOT } from '../../support/project.ts'
import { runHearth } from '../../support/run-hearth.ts'
import { waitUntil } from '../../support/wait.ts'

const CANARY = 'canary-4f1d'

let server: ChildServer
let metricsUrl: string
let env: Record<string, string>
let certificates: string

beforeAll(async () => {
  const metricsPort = await freePort()
  metricsUrl = `http://127.0.0.1:${metricsPort}`
  certificates = await mkdtemp(join(tmpdir(), 'hearth-serve-'))
  const { cert, key } = selfSigned('localhost')
  await writeFile(join(certificates, 'cert.pem'), cert)
  await writeFile(join(certificates, 'key.pem'), key)
  server = await startChildServer({
    makesCluster: true,
    env: {
      HEARTH__HTTPS__CERTIFICATE_FILE: join(certificates, 'cert.pem'),
      HEARTH__HTTPS__KEY_FILE: join(certificates, 'key.pem'),
      HEARTH__HTTPS__HOST: '127.0.0.1',
      HEARTH__HTTPS__PORTS: '0',
      HEARTH__METRICS__PORT: String(metricsPort),
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
      HEARTH__LOG__LEVEL: 'trace',
    },
  })
  env = {
    HEARTH__DATA_DIR: join(server.dataDir, 'data'),
    HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
  }
})
afterAll(async () => {
  await server?.dispose()
  await rm(certificates, { recursive: true })
})

const hearth = (words: string, input = '', more = {}) =>
  runHearth(words.split(' '), { directory: server.dataDir, env: { ...env, ...more }, input })

async function status(url: string): Promise<number> {
  return (await fetch(url)).status
}

async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(pid)])
  return stdout.trim().split(/\s+/).map(Number)
}

async function json(answer: Response): Promise<Json> {
  return answer.json()
}

async function logIn(user: string, password: string) {
  const answer = await fetch(`${server.baseUrl}/_matrix/client/v3/login`, {
    method: 'POST',
    body: JSON.stringify({ type: 'm.login.password', identifier: { type: 'm.id.user', user }, password }),
  })
  return { status: answer.status, body: await json(answer) }
}

test('HTTPS: on SIGHUP a certificate that cannot be used is named, and the one before goes on', async () => {
  const port = /HTTPS +https:\/\/127\.0\.0\.1:(\d+)/.exec(server.output())?.[1]
  expect(port).toBeDefined()
  const keyFile = join(certificates, 'key.pem')
  const key = await readFile(keyFile)
  await writeFile(keyFile, 'nonsense')
  process.kill(server.pid(), 'SIGHUP')
  await waitUntil('the complaint', () => server.output().includes('holds no private key'))
  await writeFile(keyFile, key)
  const metrics = await (await fetch(`${metricsUrl}/metrics`)).text()
  expect(metrics).toMatch(/^hearth_certificate_not_after_timestamp_seconds 1\.?\d+/m)
  await expect(fetch(`https://127.0.0.1:${port}`)).rejects.toMatchObject({
    cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
  })
})

test('on SIGHUP the configuration is read again, and it is said what waits for a restart; a wrong one changes nothing', async () => {
  const failed = async () =>
    /^hearth_reload_failed (\d)$/m.exec(await (await fetch(`${metricsUrl}/metrics`)).text())?.[1]
  const file = join(server.dataDir, 'hearth.yaml')
  await writeFile(file, 'federation: {dney: [spam.example]}')
  process.kill(server.pid(), 'SIGHUP')
  await waitUntil('the complaint', () => /the configuration is wrong/.test(server.output()))
  expect(await failed()).toBe('1')
  await writeFile(file, 'federation: {deny: [spam.example]}\ndatabase: {pool_size: 9}')
  process.kill(server.pid(), 'SIGHUP')
  const line = '"applied":["federation.deny"],"needs_restart":["database.pool_size"]'
  await waitUntil('the rules', () => server.output().includes(line))
  expect(await failed()).toBe('0')
  await rm(file)
})

test('the first start made the key and the data directory, closed to others, and said what matters', async () => {
  expect((await stat(join(env.HEARTH__DATA_DIR!, 'signing.key'))).mode & 0o777).toBe(0o600)
  expect((await stat(env.HEARTH__DATA_DIR!)).mode & 0o066).toBe(0)
  expect(server.output()).toContain(server.baseUrl)
  expect(server.output()).toContain('user create alice')
  expect(server.output()).toContain(env.HEARTH__DATA_DIR!)
})

test('health is told on both listeners', async () => {
  for (const base of [server.baseUrl, metricsUrl]) {
    expect([await status(`${base}/health/live`), await status(`${base}/health/ready`)]).toEqual([200, 200])
  }
})

test('metrics: the names that dashboards know, on their own listener only', async () => {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text()
  expect(text).toMatch(/^synapse_http_server_requests_received\{method="GET",servlet="[^"]*",code="200"\} \d+$/m)
  expect(text).toMatch(/^synapse_http_server_response_time_seconds_bucket\{.*le="\+Inf"\} \d+$/m)
  expect(text).toMatch(/^synapse_build_info\{server="hearth",version="[^"]+",nodeversion="[^"]+"\} 1$/m)
  const { version } = JSON.parse(await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8'))
  expect(text).toContain(`\nhearth_info{version="${version}"} 1\n`)
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m)
  expect(await status(`${server.baseUrl}/metrics`)).toBe(404)
  expect(await status(`${metricsUrl}/_matrix/client/versions`)).toBe(404)
})

test('a user is made while the server runs, and can log in', async () => {
  expect(await hearth('user create alice --admin', `${CANARY}-password\n`)).toMatchObject({
    code: 0,
    stdout: '@alice:localhost can log in now.\n',
  })
  expect((await logIn('alice', `${CANARY}-password`)).status).toBe(200)
  expect(await hearth('user create alice', 'another password\n')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/taken/),
  })
  expect(await hearth('user create bob', 'short\n')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/at least 8/),
  })
})

test('a second server on the same data is refused', async () => {
  const more = { HEARTH__LISTEN__PORT: '0', HEARTH__METRICS__PORT: '0' }
  const { code, stderr } = await hearth('serve', '', more)
  expect([code, stderr]).toEqual([1, expect.stringContaining('another Hearth is running')])
})

test('the database says for whom it is', async () => {
  const { code, stderr } = await hearth('user create carol', 'long enough\n', { HEARTH__SERVER_NAME: 'example.org' })
  expect([code, stderr]).toEqual([1, expect.stringContaining('this database belongs to "localhost"')])
})

test('migrate has nothing left to do', async () => {
  expect(await hearth('migrate --plan')).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing') })
})

test('no secret reaches the log', async () => {
  const { body } = await logIn('alice', `${CANARY}-password`)
  const token: string = body.access_token
  const url = `${server.baseUrl}/_matrix/client/v3/account/whoami?access_token=${token}`
  expect(await status(url)).toBe(200)
  expect(await status(`${url}${CANARY}`)).toBe(401)
  await waitUntil('the requests in the log', () => server.output().includes('whoami'))
  expect(server.output()).not.toContain(CANARY)
  expect(server.output()).not.toContain(token)
})

test('unready while Postgres is away, and ready again by itself', async () => {
  const postmaster = server.postmasterPid()!
  process.kill(postmaster, 'SIGSTOP')
  try {
    for (const session of await childrenOf(postmaster)) process.kill(session, 'SIGTERM')
    await waitUntil('unreadiness', async () => (await status(`${server.baseUrl}/health/ready`)) === 503)
    expect(await status(`${metricsUrl}/health/ready`)).toBe(503)
    expect(await status(`${server.baseUrl}/health/live`)).toBe(200)
  } finally {
    process.kill(postmaster, 'SIGKILL')
  }
  await waitUntil('readiness', async () => (await status(`${server.baseUrl}/health/ready`)) === 200)
  expect(server.postmasterPid()).not.toBe(postmaster)
  expect((await logIn('alice', `${CANARY}-password`)).status).toBe(200)
})

test('on SIGTERM long polls end with 200 and everything is gone within 10 s; users can be made while it is stopped', async () => {
  const { body } = await logIn('alice', `${CANARY}-password`)
  const headers = { authorization: `Bearer ${body.access_token}` }
  const sync = `${server.baseUrl}/_matrix/client/v3/sync`
  const first = await json(await fetch(sync, { headers }))
  const poll = fetch(`${sync}?since=${first.next_batch}&timeout=60000`, { headers })
  await waitUntil('the poll to wait', async () => {
    const text = await (await fetch(`${metricsUrl}/metrics`)).text()
    return /^hearth_waiting_syncs 1$/m.test(text)
  })
  const postmaster = server.postmasterPid()!
  const begun = performance.now()
  const stopped = server.kill('SIGTERM')
  expect((await poll).status).toBe(200)
  await stopped
  expect(performance.now() - begun).toBeLessThan(10_000)
  expect(() => process.kill(postmaster, 0)).toThrow()

  expect(await hearth('user create dave', 'long enough\n')).toMatchObject({ code: 0 })
  await server.start()
  expect((await logIn('dave', 'long enough')).status).toBe(200)
})

test('a port in use is named, and nothing is left running', async () => {
  const taken = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve))
  await server.kill('SIGTERM')
  try {
    const { code, stderr } = await hearth('serve', '', {
      HEARTH__LISTEN__PORT: String(port),
      HEARTH__METRICS__PORT: '0',
    })
    expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)])
    await expect(readFile(join(env.HEARTH__DATA_DIR!, 'postgres/cluster/postmaster.pid'))).rejects.toThrow('ENOENT')
  } finally {
    taken.close()
  }
})
