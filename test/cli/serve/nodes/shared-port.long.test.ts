import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { request as askHttp } from 'node:http'
import { request as askHttps } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, createRoom, openApi, register } from '../../../support/api.ts'
import { selfSigned } from '../../../support/certificate.ts'
import { type ChildServer, isAlive, prepareChildServer, startChildServer } from '../../../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { familyLog } from '../../../support/family.ts'
import { freePort } from '../../../support/free-port.ts'
import { runHearth, runProgramHere } from '../../../support/run-hearth.ts'
import { waitUntil } from '../../../support/wait.ts'

const NODES = 2

let database: TestDatabase
let server: ChildServer
let api: Api
let metricsUrl: string
let httpsPort: number
let files: string

beforeAll(async () => {
  database = await createTestDatabase()
  files = await mkdtemp(join(tmpdir(), 'hearth-nodes-'))
  const { cert, key } = selfSigned('localhost')
  await writeFile(join(files, 'cert.pem'), cert)
  await writeFile(join(files, 'key.pem'), key)
  const metricsPort = await freePort()
  // With port 0, nodes that begin while none listens get another one.
  httpsPort = await freePort()
  metricsUrl = `http://127.0.0.1:${metricsPort}`
  server = await startChildServer({
    args: ['--nodes', `${NODES}`],
    env: {
      HEARTH__DATABASE__URL: database.url,
      HEARTH__METRICS__PORT: `${metricsPort}`,
      HEARTH__LISTEN__SOCKET: join(files, 'socket'),
      HEARTH__HTTPS__CERTIFICATE_FILE: join(files, 'cert.pem'),
      HEARTH__HTTPS__KEY_FILE: join(files, 'key.pem'),
      HEARTH__HTTPS__HOST: '127.0.0.1',
      HEARTH__HTTPS__PORTS: `${httpsPort}`,
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
    },
  })
  api = openApi(server.baseUrl)
})
afterAll(async () => {
  await api?.close()
  await server?.dispose()
  await database?.drop()
  await rm(files, { recursive: true })
})

const metrics = async () => (await fetch(`${metricsUrl}/metrics`)).text()

test('nodes share a port; metrics and health are of all', async () => {
  await waitUntil('both nodes', async () => {
    const text = await metrics()
    return [1, 2].every((node) => text.includes(`hearth_node_up{node="${node}"} 1`))
  })
  const text = await metrics()
  for (const node of [1, 2])
    expect(text).toMatch(new RegExp(`^hearth_info\\{node="${node}",version="[^"]+"\\} 1$`, 'm'))
  expect(text.match(/^# TYPE hearth_info gauge$/gm)).toHaveLength(1)
  expect(text).toMatch(/^hearth_node_accidents_total 0$/m)
  expect((await fetch(`${metricsUrl}/health/ready`)).status).toBe(200)
  expect(server.output().match(/is ready after/g)).toHaveLength(1)
})

test('a node that hangs delays no word on health', async () => {
  const log = familyLog(server)
  const standing = [...log.pids()].find(([node]) => node !== log.serving())![1]
  process.kill(standing, 'SIGSTOP')
  try {
    let isMeasured = false
    const measured = metrics().then((text) => {
      isMeasured = true
      return text
    })
    expect((await fetch(`${metricsUrl}/health/ready`)).status).toBe(200)
    expect(isMeasured).toBe(false)
    expect(await measured).toMatch(/^hearth_node_up\{node="\d"\} 0$/m)
  } finally {
    process.kill(standing, 'SIGCONT')
  }
})

test('after kill -9 of the node that serves another one has its place at once, and it is started again', async () => {
  const log = familyLog(server)
  const alice = await register(api, 'alice')
  const room = await createRoom(api, alice.token)
  const send = (txn: string) =>
    api.request('PUT', `/rooms/${room}/send/m.room.message/${txn}`, {
      token: alice.token,
      body: { msgtype: 'm.text', body: txn },
    })
  const before = log.serving()!
  const pid = log.pids().get(before)!
  process.kill(pid, 'SIGKILL')
  const killed = performance.now()
  await waitUntil('an answer', () =>
    send('sent').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  // A lease is renewed every 2 s for 10 s.
  expect(performance.now() - killed).toBeLessThan(7_000)
  await waitUntil('the next process', () => log.pids().get(before) !== pid)
  await waitUntil('its readiness', async () => (await metrics()).includes(`hearth_node_up{node="${before}"} 1`))
  const { chunk } = await api.call('GET', `/rooms/${room}/messages?dir=f&limit=100`, { token: alice.token })
  const found = (chunk as { type: string; content: { body: string } }[]).filter(({ type }) => type === 'm.room.message')
  expect(found.map(({ content }) => content.body)).toEqual(['sent'])
  expect(log.waitsMs()).toEqual([100])
  expect(await metrics()).toMatch(/^hearth_node_accidents_total 1$/m)
})

test('they share HTTPS and the unix socket too', async () => {
  expect(server.output()).toMatch(new RegExp(`HTTPS +https://127\\.0\\.0\\.1:${httpsPort}`))
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      statusOf(n % 2 === 0 ? { socketPath: join(files, 'socket') } : { host: '127.0.0.1', port: httpsPort }),
    ),
  )
  expect(statuses).toEqual(statuses.map(() => 200))
  expect((await stat(join(files, 'socket'))).mode & 0o777).toBe(0o660)
})

test('SIGHUP reaches all nodes', async () => {
  process.kill(server.pid(), 'SIGHUP')
  const line = /"node":(\d)[^\n]*the configuration was read again; nothing is different/g
  await waitUntil('both', () => new Set([...server.output().matchAll(line)].map(([, node]) => node)).size === NODES)
})

test('SIGTERM stops all of them', async () => {
  const pids = [...familyLog(server).pids().values()]
  expect(pids.every(isAlive)).toBe(true)
  await server.kill('SIGTERM')
  expect(pids.filter(isAlive)).toEqual([])
  expect(server.output()).toMatch(/"msg":"stopped"\}\s*$/)
  // No lease is left: a process alone begins at once.
  const [node] = await database.db.query<{ is_free: boolean }>(
    'SELECT expires_at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS is_free FROM node',
  )
  expect(node).toEqual({ is_free: true })
})

test.each([
  ['0', /--set cluster\.nodes: cluster\.nodes: expected a whole number from 1 to 64, found 0/],
  ['1000', /expected a whole number from 1 to 64, found 1000/],
  ['many', /expected a whole number from 1 to 64, found "many"/],
  // The host of the test has 1 GiB.
  ['64', /64 nodes need 9800 MB, and there are 1024 MB: set 5 at most/],
])('--nodes %s is refused', async (count, expected) => {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-nodes-'))
  try {
    const { code, stderr } = await runProgramHere(['serve', '--nodes', count], { directory })
    expect(code).toBe(78)
    expect(stderr).toMatch(expected)
    expect(await readdir(directory)).toEqual([])
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a start that fails says why once, and ends', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-nodes-'))
  const other = await createTestDatabase()
  try {
    const port = Number(new URL(metricsUrl).port)
    const taken = await startTaken(port)
    try {
      const { code, stderr } = await runHearth(['serve', '--nodes', '2'], {
        directory,
        env: { HEARTH__DATABASE__URL: other.url, HEARTH__LISTEN__PORT: `${port}`, HEARTH__METRICS__PORT: '0' },
      })
      expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)])
    } finally {
      taken.close()
    }
  } finally {
    await other.drop()
    await rm(directory, { recursive: true })
  }
})

test('a node that is asked to stop while it is being loaded stops as any other', async () => {
  const other = await createTestDatabase()
  const starting = await prepareChildServer({ args: ['--nodes', '2'], env: { HEARTH__DATABASE__URL: other.url } })
  try {
    starting.begin()
    await waitUntil('the first node', () => familyLog(starting).pids().size > 0)
    await starting.kill('SIGTERM')
    // Else it would have been killed.
    expect(starting.output()).toMatch(/"node":1,[^\n]*"msg":"stopped/)
  } finally {
    await starting.dispose()
    await other.drop()
  }
})

async function startTaken(port: number) {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve))
  return taken
}

/** What a request on a connection of its own is answered. */
function statusOf(place: { readonly socketPath: string } | { readonly host: string; readonly port: number }) {
  const send = 'socketPath' in place ? askHttp : askHttps
  return new Promise<number | undefined>((resolve, reject) => {
    const options = { ...place, path: '/_matrix/client/versions', agent: false, rejectUnauthorized: false }
    const asked = send(options, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode))
    })
    asked.once('error', reject).end()
  })
}
