import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Account, type Json, openApi, register } from '../support/api.ts'

let server: AccountServer
let alice: Account

beforeAll(async () => {
  server = await startAccountServer({ server_name: 'hearth.test' })
  const api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  await api.close()
})

afterAll(() => server.close())

const ask = (path: string, init?: RequestInit) => fetch(server.baseUrl + path, init)
const json = async (path: string) => (await (await ask(path)).json()) as Json

describe('CORS', () => {
  const expected = {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
    'access-control-allow-headers': 'Origin, X-Requested-With, Content-Type, Accept, Authorization',
  }
  const requests: [string, string, RequestInit?][] = [
    ['a good answer', '/_matrix/client/versions'],
    ['a page', '/'],
    ['an error', '/_matrix/client/v3/account/whoami'],
    ['404', '/_matrix/client/v3/nothing'],
    ['405', '/_matrix/client/v3/login', { method: 'DELETE' }],
    ['a broken escape', '/_matrix/client/v3/profile/%zz'],
    ['a body that is no JSON', '/_matrix/client/v3/login', { method: 'POST', body: '{' }],
    ['a body over the limit', '/_matrix/client/v3/login', { method: 'POST', body: 'x'.repeat(1_100_000) }],
    ['a preflight', '/_matrix/client/v3/login', { method: 'OPTIONS' }],
    ['a preflight of an unknown path', '/nowhere', { method: 'OPTIONS' }],
  ]
  it.each(requests)('is allowed on %s', async (_name, path, init) => {
    const { headers } = await ask(path, init)
    for (const [name, value] of Object.entries(expected)) expect(headers.get(name)).toBe(value)
  })

  it('answers OPTIONS without running the endpoint', async () => {
    const answer = await ask('/_matrix/client/v3/register?kind=guest', { method: 'OPTIONS' })
    expect(answer.status).toBe(204)
    expect(await answer.text()).toBe('')
    expect(await server.db.query('SELECT 1 AS one FROM account WHERE is_guest')).toEqual([])
  })
})

describe('one table of paths', () => {
  it('serves r0 and v3 under both roots', async () => {
    for (const root of ['_matrix', '_proto']) {
      for (const release of ['r0', 'v3']) {
        const answer = await ask(`/${root}/client/${release}/account/whoami?access_token=${alice.token}`)
        expect(await answer.json()).toMatchObject({ user_id: '@alice:hearth.test' })
      }
    }
  })

  it('serves unstable names beside the stable one', async () => {
    const headers = { authorization: `Bearer ${alice.token}` }
    for (const prefix of ['v3', 'r0', 'unstable']) {
      const answer = await ask(`/_matrix/client/${prefix}/account/3pid/unbind`, { method: 'POST', headers })
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ errcode: 'M_NOT_JSON' })
    }
  })

  it('lets a path end in a slash', async () => {
    const headers = { authorization: `Bearer ${alice.token}` }
    for (const path of ['pushrules/', 'pushrules', 'pushrules/global/', 'capabilities/']) {
      expect((await ask(`/_matrix/client/v3/${path}`, { headers })).status).toBe(200)
    }
  })

  it('speaks of releases in the form of each dialect', async () => {
    const matrix = await json('/_matrix/client/versions')
    expect(matrix.versions).toEqual(expect.arrayContaining(['r0.5.0', 'r0.6.0', 'r0.6.1', 'v1.1', 'v1.2']))
    expect(matrix.unstable_features).toEqual(expect.any(Object))
    const proto = await json('/_proto/client/versions')
    for (const version of proto.versions) expect(version).toMatch(/^r\d+\.\d+\.\d+$/)
    // Only the latest patch of each release is reported.
    const releases = proto.versions.map((version: string) => version.replace(/\.\d+$/, ''))
    expect(new Set(releases).size).toBe(releases.length)
  })

  it('serves discovery under both names', async () => {
    for (const name of ['matrix', 'proto']) {
      const answer = await ask(`/.well-known/${name}/client`)
      expect(await answer.json()).toEqual({ 'm.homeserver': { base_url: 'http://127.0.0.1:0' } })
      expect((await ask(`/.well-known/${name}/server`)).status).toBe(404)
    }
  })
})

describe('a configured server', () => {
  it('tells clients and servers where to go', async () => {
    const other = await startAccountServer({
      public_base_url: 'https://matrix.hearth.test/',
      well_known: {
        identity_server_base_url: 'https://id.hearth.test',
        server: 'matrix.hearth.test:443',
        support_email: 'a@b.test',
        policy_server_key: '6yhHGKhCiXTSEN2ksjV7kX/N6rBQZ3Xb+M7LlC6NS+s',
      },
    })
    const read = async (path: string) => (await fetch(`${other.baseUrl}/.well-known/${path}`)).json()
    expect(await read('matrix/client')).toEqual({
      'm.homeserver': { base_url: 'https://matrix.hearth.test' },
      'm.identity_server': { base_url: 'https://id.hearth.test' },
    })
    expect(await read('proto/server')).toEqual({ 'm.server': 'matrix.hearth.test:443' })
    expect(await read('matrix/policy_server')).toEqual({
      public_keys: { ed25519: '6yhHGKhCiXTSEN2ksjV7kX/N6rBQZ3Xb+M7LlC6NS+s' },
    })
    expect(await read('matrix/support')).toEqual({ contacts: [{ role: 'm.role.admin', email_address: 'a@b.test' }] })
    await other.close()
  })
})

describe('request ids', () => {
  it('differ, and do not come from the client', async () => {
    const ids = await Promise.all(
      [1, 2, 3].map(async () =>
        (await ask('/_matrix/client/versions', { headers: { 'x-request-id': 'mine' } })).headers.get('x-request-id'),
      ),
    )
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-z]+$/)
  })
})

describe('metrics', () => {
  it('count by the operation as declared, not by the path asked for', async () => {
    await ask('/_proto/client/r0/profile/@nobody:hearth.test')
    const text = await server.metrics.text()
    expect(text).toContain('servlet="C/profile/{userId}",code="404"')
    expect(text).not.toContain('@nobody')
  })
})

describe('tokens and logs', () => {
  it('never meet', async () => {
    const canary = `hearth_CANARY${'x'.repeat(30)}_00000000`
    await ask(`/_matrix/client/v3/account/whoami?access_token=${canary}`)
    await ask('/_matrix/client/v3/account/whoami', { headers: { authorization: `Bearer ${canary}` } })
    await ask(`/_matrix/client/v3/nothing/${canary}?access_token=${canary}`)
    await ask(`/_matrix/client/v3/profile/%zz${canary}?access_token=${canary}`)
    await ask('/_matrix/client/v3/login', {
      method: 'POST',
      body: JSON.stringify({ type: 'm.login.password', user: 'alice', password: canary, token: canary }),
    })
    await ask(`/_matrix/client/v3/account/whoami?access_token=${alice.token}`)
    expect(server.logged()).toContain('C/account/whoami')
    expect(server.logged()).not.toContain('CANARY')
    expect(server.logged()).not.toContain(alice.token)
  })
})

describe('the welcome page', () => {
  it('says what this is, runs nothing and loads nothing', async () => {
    const answer = await ask('/')
    const page = await answer.text()
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    for (const text of ['hearth.test', 'http://127.0.0.1:0', 'Hearth 0.0.0-test', 'homeserver'])
      expect(page).toContain(text)
    expect(page).not.toMatch(/<script|\son\w+=|style=|https?:\/\/(?!127\.0\.0\.1)/)
    expect(page).toContain('width=device-width')
  })

  it('escapes what it shows', async () => {
    const { loadPages } = await import('../../src/domain/pages.ts')
    const { config } = loadConfig({ values: { identity: { brand: '<b>"x"</b>' } }, directory: tmpdir() })
    const pages = await loadPages(config)
    const facts = { address: "http://a/'><script>", version: '1' }
    for (const name of ['welcome.page', 'welcome-identity.page'] as const) {
      const { html } = pages.render(name, facts, { languages: [] })
      expect(html).toContain('http://a/&#39;&#62;&#60;script&#62;')
      expect(html).not.toMatch(/<b>|<script>/)
    }
  })
})

describe('the role list', () => {
  it('leaves no endpoint file out', async () => {
    const { clientEndpoints } = await import('../../src/routes/client/index.ts')
    const listed = new Set(clientEndpoints)
    const folder = new URL('../../src/routes/client/', import.meta.url)
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
    for (const file of files.filter((name) => name !== 'index.ts')) {
      const module: Record<string, unknown> = await import(new URL(file, folder).href)
      const declared = Object.entries(module).filter(
        ([, value]) => typeof (value as { path?: unknown }).path === 'string',
      )
      for (const [name, value] of declared) {
        expect(listed.has(value as never), `${file} is in no list`).toBe(true)
        const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
        expect(`${words}.ts`).toBe(basename(file))
      }
    }
  })
})
