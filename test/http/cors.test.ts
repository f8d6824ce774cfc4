import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

const HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
  'access-control-allow-headers': 'Origin, X-Requested-With, Content-Type, Accept, Authorization',
}

const corsOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')))

const C = '/_matrix/client/v3'

test('D4: every answer carries the same three CORS headers, errors and unknown paths included', async () => {
  const rows: [number, string, RequestInit?][] = [
    [200, '/_matrix/client/versions'],
    [401, `${C}/account/whoami`],
    [400, `${C}/login`, { method: 'POST', body: '{' }],
    [401, '/_matrix/federation/v1/send/1', { method: 'PUT', body: '{}' }],
    [404, '/nowhere'],
    [405, `${C}/sync`, { method: 'DELETE' }],
    [400, `${C}/rooms/%zz/state`],
    [413, `${C}/login`, { method: 'POST', body: 'x'.repeat(2_000_000) }],
  ]
  for (const [status, path, init] of rows) {
    for (const origin of [undefined, 'https://app.example.org']) {
      const headers = origin === undefined ? {} : { origin }
      const answer = await fetch(server.baseUrl + path, { ...init, headers })
      // Outside of the interfaces, browsers get a page.
      const vary = path === '/nowhere' ? 'accept' : null
      expect([path, answer.status, corsOf(answer), answer.headers.get('vary')]).toEqual([path, status, HEADERS, vary])
    }
  }
})

test('D4: a preflight is answered on any path, with and without what browsers add', async () => {
  const asked = { origin: 'https://app.example.org', 'access-control-request-method': 'PUT' }
  for (const path of [`${C}/login`, `${C}/sync`, '/nowhere', '/_proto/client/r0/createRoom', '/']) {
    for (const headers of [{}, asked]) {
      const answer = await fetch(server.baseUrl + path, { method: 'OPTIONS', headers })
      expect([path, answer.status, await answer.text()]).toEqual([path, 204, ''])
      expect(corsOf(answer)).toEqual({ ...HEADERS, 'access-control-max-age': '86400' })
    }
  }
})

test('paths of profiles, and no others, name PATCH', async () => {
  for (const path of [`${C}/profile/@a:localhost`, '/_matrix/client/unstable/uk.tcpip.msc4133/profile/@a:localhost']) {
    for (const method of ['OPTIONS', 'GET']) {
      const { headers } = await fetch(server.baseUrl + path, { method })
      expect(headers.get('access-control-allow-methods')).toBe('GET, POST, PUT, DELETE, OPTIONS, PATCH')
    }
  }
  for (const path of ['/_proto/client/r0/profile/@a:localhost', `${C}/sync?x=/profile/`]) {
    const { headers } = await fetch(server.baseUrl + path, { method: 'OPTIONS' })
    expect(headers.get('access-control-allow-methods')).toBe('GET, POST, PUT, DELETE, OPTIONS')
  }
})

test('D4: what is no HTTP carries them too', async () => {
  const { port } = new URL(server.baseUrl)
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.write('nonsense\r\n\r\n'))
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    socket.on('end', () => resolve(text)).on('error', reject)
  })
  for (const [name, value] of Object.entries(HEADERS)) expect(answer).toContain(`${name}: ${value}\r\n`)
})
