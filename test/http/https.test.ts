import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { examineSetup } from '../../src/cli/doctor/setup.ts'
import { loadCertificate, openCertificate } from '../../src/cli/serve/certificate.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { ServerName } from '../../src/core/ids.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import { openApi, register, syncPath } from '../support/api.ts'
import { type Authority, type Certificate, createAuthority } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { IS_TWO_NODES } from '../support/two-nodes.ts'
import { waitUntil } from '../support/wait.ts'

const DAY_MS = 86_400_000

let authority: Authority
let directory: string
let files: { certificate_file: string; key_file: string }
let server: TestServer
let serverName: ServerName
const log: { level: number; msg: string; reason?: string }[] = []

/** As certbot does: new files elsewhere, and the links to them replaced. */
async function install({ cert, key }: Certificate): Promise<void> {
  const at = await mkdtemp(join(directory, 'archive-'))
  for (const [name, text] of [
    ['fullchain.pem', cert],
    ['privkey.pem', key],
  ] as const) {
    await writeFile(join(at, name), text)
    await symlink(join(at, name), join(at, 'link'))
    await rename(join(at, 'link'), join(directory, name))
  }
}

beforeAll(async () => {
  authority = createAuthority()
  directory = await mkdtemp(join(tmpdir(), 'hearth-https-'))
  files = { certificate_file: join(directory, 'fullchain.pem'), key_file: join(directory, 'privkey.pem') }
  await install(authority.issue(['localhost', '127.0.0.1'], 90))
  const port = await freePort()
  serverName = `localhost:${port}` as ServerName
  const config = {
    server_name: serverName,
    https: { ...files, host: '127.0.0.1', ports: [port, 0] },
    outbound: { ca_file: authority.file },
  }
  const stream = { write: (line: string) => void log.push(JSON.parse(line)) }
  server = await startServer(config, { log: pino({ level: 'info' }, stream) })
})
afterAll(async () => {
  await server.close()
  authority.remove()
  await rm(directory, { recursive: true })
})

interface Answer {
  readonly status: number
  readonly text: string
  readonly certificate: PeerCertificate
  readonly isReused: boolean
}

function get(port: number, path: string, agent?: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: 'localhost', port, path, ca: authority.cert, agent: agent ?? false }, (answer) => {
      let text = ''
      const certificate = (answer.socket as TLSSocket).getPeerCertificate()
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode!, text, certificate, isReused: asking.reusedSocket }))
    })
    asking.on('error', reject).end()
  })
}

const serialAt = async (port: number) => (await get(port, '/_matrix/client/versions')).certificate.serialNumber

describe('HTTPS without a proxy', () => {
  it('answers on each port, and keeps connections', async () => {
    expect(server.httpsPorts()).toHaveLength(2)
    for (const port of server.httpsPorts()) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const first = await get(port, '/_matrix/client/versions', agent)
      expect([first.status, first.text]).toEqual([200, expect.stringContaining('v1.1')])
      const second = await get(port, '/_matrix/federation/v1/version', agent)
      expect([second.status, second.isReused]).toEqual([200, true])
      agent.destroy()
    }
    expect((await get(server.httpsPorts()[1]!, '/nowhere')).text).toContain('M_UNRECOGNIZED')
  })

  it.each<[string, object, string]>([
    ['TLS 1.3', { minVersion: 'TLSv1.3' }, 'TLSv1.3'],
    ['TLS 1.2', { maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    ['TLS 1.1', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }, 'refused'],
  ])('speaks %s: %j, %s', async (_name, options, expected) => {
    const [port] = server.httpsPorts()
    const outcome = await new Promise((resolve) => {
      const socket = connect({
        host: '127.0.0.1',
        port: port!,
        servername: 'localhost',
        ca: authority.cert,
        ...options,
      })
      socket.once('secureConnect', () => {
        resolve(socket.getProtocol())
        socket.destroy()
      })
      socket.once('error', () => resolve('refused'))
    })
    expect(outcome).toBe(expected)
  })

  it('asks for no certificate of a client, and does not mind one', async () => {
    const [port] = server.httpsPorts()
    const own = authority.issue(['client.test'])
    const agent = new Agent({ cert: own.cert, key: own.key })
    expect((await get(port!, '/_matrix/client/versions', agent)).status).toBe(200)
    agent.destroy()
  })

  it('is all that two servers need to share a room', async () => {
    const port = await freePort()
    const other = await startServer({
      server_name: `localhost:${port}` as ServerName,
      https: { ...files, host: '127.0.0.1', ports: [port] },
      outbound: { ca_file: authority.file },
    })
    const [here, there] = [openApi(server.baseUrl), openApi(other.baseUrl)]
    const [alice, bob] = [await register(here, 'alice'), await register(there, 'bob')]
    const body = { preset: 'public_chat', room_alias_name: 'direct' }
    const { room_id } = await here.call('POST', '/createRoom', { token: alice.token, body })
    const alias = encodeURIComponent(`#direct:${serverName}`)
    expect(await there.call('POST', `/join/${alias}`, { token: bob.token, body: {} })).toEqual({ room_id })
    const { joined } = await here.call('GET', `/rooms/${encodeURIComponent(room_id)}/joined_members`, {
      token: alice.token,
    })
    expect(Object.keys(joined).sort()).toEqual([alice.userId, bob.userId].sort())
    await Promise.all([here.close(), there.close()])
    await other.close()
    // Their authority is not everybody's.
    await expect(fetch(`https://localhost:${port}`)).rejects.toThrow()
  })
})

describe('the certificate', () => {
  it('is replaced when its files are, and connections go on', async () => {
    const [port] = server.httpsPorts()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const { certificate } = await get(port!, '/_matrix/client/versions', agent)
    await install(authority.issue(['localhost', '127.0.0.1'], 60))
    await waitUntil('the new certificate', async () => (await serialAt(port!)) !== certificate.serialNumber)
    for (const each of server.httpsPorts()) expect(await serialAt(each)).not.toBe(certificate.serialNumber)
    const onOld = await get(port!, '/_matrix/client/versions', agent)
    expect([onOld.isReused, onOld.certificate.serialNumber]).toEqual([true, certificate.serialNumber])
    agent.destroy()
  })

  it.each<[string, () => Partial<Certificate>, RegExp]>([
    ['no certificate', () => ({ cert: 'nonsense' }), /https\.certificate_file: .*fullchain\.pem holds no certificate/],
    ['no key', () => ({ key: 'nonsense' }), /https\.key_file: .*privkey\.pem holds no private key/],
    ['another key', () => ({ key: authority.issue(['localhost']).key }), /is not the key of the certificate/],
    ['half a file', () => ({ cert: authority.issue(['localhost']).cert.slice(0, 300) }), /holds no certificate/],
  ])('stays in use when what comes is %s, and the log says why', async (_what, flaw, expected) => {
    const [port] = server.httpsPorts()
    const before = await serialAt(port!)
    await install({ ...authority.issue(['localhost', '127.0.0.1'], 60), ...flaw() })
    log.length = 0
    // What SIGHUP does.
    expect(await server.certificate!.reload()).toBe(false)
    expect(log.find(({ level }) => level === 50)).toMatchObject({
      msg: 'the new certificate cannot be used; the one before stays in use',
      reason: expect.stringMatching(expected),
    })
    expect(await serialAt(port!)).toBe(before)
    await install(authority.issue(['localhost', '127.0.0.1'], 60))
    expect(await server.certificate!.reload()).toBe(true)
    expect(await serialAt(port!)).not.toBe(before)
  })

  test('that is not there, or does not belong to its key, stops the start with what to do', async () => {
    const lost = { ...server.config.https, certificate_file: join(directory, 'lost.pem') }
    await expect(loadCertificate(lost)).rejects.toThrow(
      /^https\.certificate_file: .*lost\.pem is not there; name the file with the chain/,
    )
    await expect(loadCertificate({ ...server.config.https, key_file: directory })).rejects.toThrow(/cannot be read/)
    const halves = { https: { certificate_file: files.certificate_file } }
    expect(() => loadConfig({ values: halves, directory })).toThrow('https.certificate_file needs a https.key_file')
    const env = { HEARTH__HTTPS__PORTS: '443, 8448' }
    expect(loadConfig({ env, directory }).config.https.ports).toEqual([443, 8448])
  })

  test('that runs out is in the log once a day, in the metrics, and in what the doctor says', async () => {
    const soon = authority.issue(['localhost'], 10)
    const at = await mkdtemp(join(directory, 'soon-'))
    const paths = { certificate_file: join(at, 'c.pem'), key_file: join(at, 'k.pem') }
    await Promise.all([writeFile(paths.certificate_file, soon.cert), writeFile(paths.key_file, soon.key)])
    const lines: string[] = []
    const said = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
    let now = Date.now()
    const { config } = loadConfig({ values: { server_name: 'example.org', https: paths }, directory })
    const certificate = (await openCertificate(config.https, { log: said, now: () => now }))!
    await certificate.reload()
    now += DAY_MS
    await certificate.reload()
    now += 10 * DAY_MS
    await certificate.reload()
    certificate.close()
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'the certificate runs out in 9 days',
      'the certificate runs out in 8 days',
      'the certificate has run out',
    ])
    const metrics = createMetrics({ version: '', node: '' })
    metrics.watchCertificate(() => certificate.current().validUntil)
    expect(await metrics.text()).toMatch(/hearth_certificate_not_after_timestamp_seconds 1\.?\d+/)
    const findings = (await examineSetup(config, '24.0.0')).filter(({ subject }) => subject === 'certificate')
    expect(findings).toMatchObject([
      { verdict: 'warning', text: expect.stringContaining('good for 9 more days') },
      { verdict: 'problem', text: expect.stringMatching(/is for DNS:localhost, and not for example\.org/) },
    ])
  })
})

test('a port that is taken stops the start with what to do', async () => {
  const https = { ...files, host: '127.0.0.1', ports: [server.httpsPorts()[0]!] }
  await expect(startServer({ https })).rejects.toThrow(
    /something listens there already; see https\.host and https\.ports/,
  )
})

// Where both of two nodes stop at the same time, nobody is left to ask for what one of them passed on.
test.skipIf(IS_TWO_NODES)('a stop lets what is under way end, over HTTPS too', async () => {
  const [port] = server.httpsPorts()
  const api = openApi(server.baseUrl)
  const { token } = await register(api, 'bob')
  const { next_batch } = await api.call('GET', syncPath({}), { token })
  const agent = new Agent({ keepAlive: true })
  const path = `/_matrix/client/v3/sync?since=${next_batch}&timeout=60000&access_token=${token}`
  const waiting = get(port!, path, agent)
  await waitUntil('the sync', async () => /^hearth_waiting_syncs 1$/m.test(await server.metrics()))
  await server.restart()
  expect((await waiting).status).toBe(200)
  expect((await get(port!, '/_matrix/client/versions')).status).toBe(200)
  agent.destroy()
  await api.close()
})
