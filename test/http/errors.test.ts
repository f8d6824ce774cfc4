import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Account, openApi, PASSWORD, register } from '../support/api.ts'
import { cpuMsOf } from '../support/slowness.ts'

let server: AccountServer
let alice: Account

beforeAll(async () => {
  server = await startAccountServer()
  const api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  await api.close()
})

afterAll(() => server.close())

interface Sent {
  readonly method?: string
  readonly token?: string
  readonly body?: string | Buffer
  readonly headers?: Record<string, string>
}

async function ask(path: string, { method = 'GET', token, body, headers = {} }: Sent = {}) {
  const answer = await fetch(server.baseUrl + path, {
    method,
    headers: { ...headers, ...(token && { authorization: `Bearer ${token}` }) },
    body: body ?? null,
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, json: text === '' ? undefined : JSON.parse(text) }
}

const C = '/_matrix/client/v3'
const dataPath = (type: string) => `${C}/user/${encodeURIComponent(alice.userId)}/account_data/${type}`
const put = (type: string, body: string | Buffer, headers?: Record<string, string>) =>
  ask(dataPath(type), { method: 'PUT', token: alice.token, body, ...(headers && { headers }) })

const profileField = (body: string): Sent => ({ method: 'PUT', token: alice.token, body })
const deleteDevices = (body: string) => ask(`${C}/delete_devices`, { method: 'POST', token: alice.token, body })

describe('the error table', () => {
  const tooDeep = '['.repeat(200_000)
  const cases: [name: string, request: () => ReturnType<typeof ask>, status: number, errcode: string][] = [
    ['an unknown path', () => ask(`${C}/nothing/here`), 404, 'M_UNRECOGNIZED'],
    ['a path outside every prefix', () => ask('/elsewhere'), 404, 'M_UNRECOGNIZED'],
    ['a known path with a doubled slash', () => ask('/_matrix/client//versions'), 404, 'M_UNRECOGNIZED'],
    ['a known path with another method', () => ask(`${C}/login`, { method: 'PUT' }), 405, 'M_UNRECOGNIZED'],
    ['a method that no path knows', () => ask(`${C}/login`, { method: 'QUERY' }), 405, 'M_UNRECOGNIZED'],
    ['such a method with a body', () => ask(`${C}/login`, { method: 'QUERY', body: '{}' }), 405, 'M_UNRECOGNIZED'],
    ['such a method at an unknown path', () => ask(`${C}/nothing`, { method: 'QUERY' }), 404, 'M_UNRECOGNIZED'],
    ['no token', () => ask(`${C}/account/whoami`), 401, 'M_MISSING_TOKEN'],
    ['an empty token', () => ask(`${C}/account/whoami?access_token=`), 401, 'M_MISSING_TOKEN'],
    ['a foreign token', () => ask(`${C}/account/whoami`, { token: 'syt_x' }), 401, 'M_UNKNOWN_TOKEN'],
    ['no body', () => ask(`${C}/login`, { method: 'POST' }), 400, 'M_NOT_JSON'],
    ['text', () => ask(`${C}/login`, { method: 'POST', body: 'hello' }), 400, 'M_NOT_JSON'],
    ['half a body', () => ask(`${C}/login`, { method: 'POST', body: '{"type":' }), 400, 'M_NOT_JSON'],
    ['bytes that are not UTF-8', () => put('a', Buffer.from('{"a":"\xff\xfe"}', 'latin1')), 400, 'M_NOT_JSON'],
    ['a number beyond any double', () => put('a', '{"a":1e999}'), 400, 'M_NOT_JSON'],
    ['an array for an object', () => put('a', '[]'), 400, 'M_BAD_JSON'],
    ['null for an object', () => put('a', 'null'), 400, 'M_BAD_JSON'],
    ['200,000 brackets', () => put('a', tooDeep), 400, 'M_BAD_JSON'],
    ['200,000 brackets, closed', () => put('a', tooDeep + ']'.repeat(200_000)), 400, 'M_BAD_JSON'],
    ['200,000 objects', () => put('a', '{"a":'.repeat(200_000)), 400, 'M_BAD_JSON'],
    ['a wrong type', () => ask(`${C}/login`, { method: 'POST', body: '{"type":7}' }), 400, 'M_BAD_JSON'],
    ['a missing key', () => ask(`${C}/login`, { method: 'POST', body: '{}' }), 400, 'M_MISSING_PARAM'],
    ['a missing query parameter', () => ask(`${C}/register/available`), 400, 'M_MISSING_PARAM'],
    ['a repeated query parameter', () => ask(`${C}/register/available?username=a&username=b`), 400, 'M_INVALID_PARAM'],
    ['a repeated token', () => ask(`${C}/account/whoami?access_token=a&access_token=b`), 400, 'M_INVALID_PARAM'],
    ['a value outside its list', () => ask(`${C}/register?kind=robot`, { method: 'POST' }), 400, 'M_INVALID_PARAM'],
    ['a broken escape in the path', () => ask(`${C}/profile/%zz`), 400, 'M_INVALID_PARAM'],
    ['half an escape in the path', () => ask(`${C}/profile/%4`), 400, 'M_INVALID_PARAM'],
    ['an escape that is not UTF-8', () => ask(`${C}/profile/%ff`), 400, 'M_INVALID_PARAM'],
    ['a broken escape in the query', () => ask(`${C}/register/available?username=%zz`), 400, 'M_INVALID_PARAM'],
    ['a query escape that is not UTF-8', () => ask(`${C}/register/available?username=%ff`), 400, 'M_INVALID_PARAM'],
    ['a user id that is none', () => ask(`${C}/profile/alice`), 400, 'M_INVALID_PARAM'],
    ['a user id that is too long', () => ask(`${C}/profile/@${'a'.repeat(260)}:localhost`), 400, 'M_INVALID_PARAM'],
    [
      'a path part that is far too long',
      () => ask(`${C}/profile/@${'a'.repeat(5000)}:localhost`),
      400,
      'M_INVALID_PARAM',
    ],
    ['a NUL in the path', () => put('a%00b', '{}'), 400, 'M_INVALID_PARAM'],
    [
      'a NUL in the name of a session',
      () => deleteDevices('{"devices":[],"auth":{"type":"m.login.password","session":"\\u0000"}}'),
      401,
      'M_UNKNOWN',
    ],
    [
      'a display name with half of a character',
      () => ask(`${C}/profile/${alice.userId}/displayname`, profileField('{"displayname":"a\\ud800"}')),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'another field of a profile with half of a character',
      () => ask(`${C}/profile/${alice.userId}/org.example.mood`, profileField('{"org.example.mood":["\\udc00"]}')),
      400,
      'M_INVALID_PARAM',
    ],
    ['a body over the limit', () => put('a', `{"a":"${'x'.repeat(1_100_000)}"}`), 413, 'M_TOO_LARGE'],
    ['a malformed content type', () => put('a', '{}', { 'content-type': ';;;' }), 400, 'M_NOT_JSON'],
    [
      "another user's data",
      () => ask(dataPath('a').replace('alice', 'bob'), { token: alice.token }),
      403,
      'M_FORBIDDEN',
    ],
  ]

  it.each(cases)('%s', async (_name, request, status, errcode) => {
    const answer = await request()
    expect(answer.json).toMatchObject({ errcode, error: expect.any(String) })
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  })

  it('names what is wrong', async () => {
    const { json } = await ask(`${C}/login`, { method: 'POST', body: '{"type":"m.login.password","identifier":3}' })
    expect(json.error).toContain("'identifier' must be an object")
    const missing = await ask(`${C}/delete_devices`, { method: 'POST', token: alice.token, body: '{}' })
    expect(missing.json.error).toContain("'devices' is missing")
    const deep = await ask(`${C}/delete_devices`, { method: 'POST', token: alice.token, body: '{"devices":["A",2]}' })
    expect(deep.json.error).toContain("'devices.1' must be a string")
  })

  it('says which methods a path knows', async () => {
    const answer = await ask(`${C}/devices/ABC`, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('DELETE, GET, PUT, OPTIONS')
    for (const beginning of ['/_other/client/v3', '/_matrix/client/v2', '/_matrixx/client/v3', '/x_matrix/client/r0']) {
      for (const method of ['GET', 'POST'])
        expect((await ask(`${beginning}/devices/ABC`, { method })).status, beginning).toBe(404)
    }
  })

  it('stores nothing of what it refused', async () => {
    await put('refused', '[1]')
    await put('refused', '{"a":')
    expect((await ask(dataPath('refused'), { token: alice.token })).status).toBe(404)
  })

  it('judges 200,000 brackets in less than 100 ms', async () => {
    const body = '['.repeat(200_000)
    const rounds: number[] = []
    for (let round = 0; round < 5; round++) rounds.push(await cpuMsOf(() => put('brackets', body)))
    expect(Math.min(...rounds)).toBeLessThan(100)
  })
})

describe('what is let through', () => {
  it('keeps __proto__ and constructor keys', async () => {
    const body = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}},"toString":"text"}'
    expect((await put('proto', body)).status).toBe(200)
    const answer = await fetch(server.baseUrl + dataPath('proto'), {
      headers: { authorization: `Bearer ${alice.token}` },
    })
    expect(await answer.text()).toBe(body)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('keeps lone surrogates in account data', async () => {
    const body = '{"a":"\\ud800","\\udc00":1}'
    expect((await put('surrogate', body)).status).toBe(200)
    expect((await ask(dataPath('surrogate'), { token: alice.token })).json).toEqual(JSON.parse(body))
  })

  it('reads JSON of any content type, and of none', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=utf-8',
      'image/png',
    ]) {
      expect((await put('typed', '{"a":1}', { 'content-type': type })).status).toBe(200)
    }
    expect(await rawPut(dataPath('untyped'), '{"a":1}', alice.token)).toContain('HTTP/1.1 200')
  })

  it('takes an empty body where the body is optional', async () => {
    expect((await ask(`${C}/register?kind=guest`, { method: 'POST' })).status).toBe(200)
  })

  it('decodes escapes once', async () => {
    const type = 'a/b%25 %é'
    expect((await put(encodeURIComponent(type), '{"ok":true}')).status).toBe(200)
    expect((await ask(dataPath(encodeURIComponent(type)), { token: alice.token })).json).toEqual({ ok: true })
    const rows = await server.db.query<{ type: string }>('SELECT type FROM account_data WHERE type = $1', [type])
    expect(rows).toHaveLength(1)
  })

  it('takes a name that no device can have for one that none has', async () => {
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: PASSWORD }
    expect(await deleteDevices(JSON.stringify({ devices: ['\0', 'NONE'], auth }))).toMatchObject({
      status: 200,
      json: {},
    })
  })

  it('ignores query parameters that it does not know', async () => {
    expect((await ask('/_matrix/client/versions?_cacheBuster=1&_cacheBuster=2')).status).toBe(200)
  })
})

describe('requests that are not HTTP', () => {
  it('answers garbage with 400 and CORS headers, and lives on', async () => {
    const answer = await rawBytes('NONSENSE\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 400/)
    expect(answer).toContain('access-control-allow-origin: *')
    expect(answer).toContain('M_UNKNOWN')
    expect((await ask('/_matrix/client/versions')).status).toBe(200)
  })

  it('answers headers that never end with 431', async () => {
    expect(await rawBytes(`GET / HTTP/1.1\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431/)
  })
})

describe('an error of our own', () => {
  it('is a 500 that shows nothing and is logged with the request id', async () => {
    const canary = randomBytes(8).toString('hex')
    const { profiles } = server.services
    const original = profiles.get
    Object.assign(profiles, { get: () => Promise.reject(new Error(`broken ${canary}`)) })
    const answer = await ask(`${C}/profile/${alice.userId}`)
    Object.assign(profiles, { get: original })
    expect(answer.status).toBe(500)
    expect(answer.json.errcode).toBe('M_UNKNOWN')
    expect(JSON.stringify(answer.json)).not.toContain(canary)
    const id = answer.headers.get('x-request-id')
    const line = server
      .logged()
      .split('\n')
      .find((text) => text.includes(canary))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ request_id: id, route: 'C/profile/{userId}' })
  })
})

function rawBytes(bytes: string): Promise<string> {
  const { hostname, port } = new URL(server.baseUrl)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

function rawPut(path: string, body: string, token: string): Promise<string> {
  const lines = [`PUT ${path} HTTP/1.1`, 'host: x', `authorization: Bearer ${token}`, `content-length: ${body.length}`]
  return rawBytes(`${lines.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`)
}
