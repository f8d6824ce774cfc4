import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import type { UserId } from '../../../src/core/ids.ts'
import { requirePolicyTexts } from '../../../src/domain/identity/policies.ts'
import { createTerms } from '../../../src/domain/identity/terms.ts'
import { identityEndpoints } from '../../../src/routes/identity/index.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type IdentityApi, openIdentity, P1, P2 } from '../identity-api.ts'

const PRIVACY = 'https://example.org/privacy-1.2-en.html'
const PRIVACY_FR = 'https://example.org/privacy-1.2-fr.html'
const BASE = 'https://id.example.org'
const TERMS = `${BASE}/identity/policies/terms_of_service/2.0/en`
const TERMS_DE = `${BASE}/identity/policies/terms_of_service/2.0/de`

const POLICIES = [
  {
    id: 'privacy_policy',
    version: '1.2',
    languages: [
      { language: 'en', name: 'Privacy Policy', url: PRIVACY },
      { language: 'fr', name: 'Politique de confidentialité', url: PRIVACY_FR },
    ],
  },
  {
    id: 'terms_of_service',
    version: '2.0',
    languages: [
      { language: 'en', name: 'Terms of Service' },
      { language: 'de', name: 'Nutzungs<b>bedingungen' },
    ],
  },
]

let directory: string
let server: AccountServer
let identity: IdentityApi
let users = 0
let token: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-policies-'))
  await writeFile(
    join(directory, 'terms_of_service-2.0-en.txt'),
    '# What we keep\n\nYour address. See https://example.org/a?b=1&c=2.\n\n- one\n- <script>two</script>\n',
  )
  await writeFile(join(directory, 'terms_of_service-2.0-de.txt'), 'Kurz.\r\n\r\nUnd gut.\r\n')
  server = await startAccountServer(
    { identity: { base_url: `${BASE}/`, terms: { directory, policies: POLICIES } } },
    { openIdVerifier: { subjectOf: async (name) => `@user${++users}:${name}` } },
  )
  identity = openIdentity(server.baseUrl)
})

afterAll(async () => {
  await server.close()
  await rm(directory, { recursive: true })
})

async function newToken(): Promise<string> {
  const body = { access_token: 'x', token_type: 'Bearer', proto_server_name: 'elsewhere.test', expires_in: 1 }
  return (await identity.ask('POST', '/account/register', { body })).body.token
}

beforeEach(async () => {
  token = await newToken()
})

const accept = (...user_accepts: unknown[]) => identity.ask('POST', '/terms', { token, body: { user_accepts } })
const isAdmitted = async (by = token) => (await identity.ask('GET', '/account', { token: by })).status === 200

describe('seed 1, GET P2/terms', () => {
  it('200 {policies}, to anybody: version, and per language name and url', async () => {
    expect(await identity.ask('GET', '/terms')).toMatchObject({
      status: 200,
      body: {
        policies: {
          privacy_policy: {
            version: '1.2',
            en: { name: 'Privacy Policy', url: PRIVACY },
            fr: { name: 'Politique de confidentialité', url: PRIVACY_FR },
          },
          terms_of_service: {
            version: '2.0',
            en: { name: 'Terms of Service', url: TERMS },
            de: { name: 'Nutzungs<b>bedingungen', url: TERMS_DE },
          },
        },
      },
    })
  })

  it('facts 21: no terms are an empty map, and no gate', async () => {
    const open = await startAccountServer({}, { openIdVerifier: { subjectOf: async () => '@bob:elsewhere.test' } })
    const { ask } = openIdentity(open.baseUrl)
    expect((await ask('GET', '/terms')).body).toEqual({ policies: {} })
    const body = { access_token: 'x', matrix_server_name: 'elsewhere.test' }
    const { token } = (await ask('POST', '/_matrix/identity/v2/account/register', { body })).body
    expect(await ask('GET', '/account', { token })).toMatchObject({ status: 200 })
    await open.close()
  })
})

describe('seed 1, "Authentication" 5: the gate', () => {
  it('403 M_TERMS_NOT_SIGNED on an authenticated endpoint, but not on terms and logout', async () => {
    expect(await identity.ask('GET', '/account', { token })).toMatchObject({
      status: 403,
      body: { errcode: 'M_TERMS_NOT_SIGNED', error: expect.any(String) },
    })
    expect(await accept()).toMatchObject({ status: 200, body: {} })
    expect(await identity.ask('POST', '/account/logout', { token })).toMatchObject({ status: 200 })
  })

  it('an unknown token is unauthorised before anything is asked of it', async () => {
    expect(await identity.ask('GET', '/account', { token: 'x' })).toMatchObject({ status: 401 })
    expect(await identity.ask('POST', '/terms', { token: 'x', body: { user_accepts: [] } })).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNAUTHORIZED' },
    })
  })
})

/** The column "Auth" of the seed's endpoints: operations that need an access token, and those that do not. */
const NEEDS_TOKEN = [
  ...['GET P2/account', 'POST P2/account/logout', 'POST P2/terms', 'GET P2/hash_details', 'POST P2/lookup'],
  ...['POST P2/validate/email/requestToken', 'POST P2/validate/email/submitToken'],
  ...['POST P2/validate/msisdn/requestToken', 'POST P2/validate/msisdn/submitToken'],
  ...['GET P2/validate/msisdn/submitToken', 'GET P2/3pid/getValidated3pid'],
  ...['POST P2/3pid/bind', 'POST P2/bind', 'POST P2/3pid/unbind', 'POST P2/unbind'],
  ...['POST P2/store-invite', 'POST P2/sign-ed25519'],
]
const OPEN_TO_ALL = [
  ...['GET P2', 'POST P2/account/register', 'GET P2/terms', 'GET P2/validate/email/submitToken', 'GET P1'],
  ...['P1', 'P2'].flatMap((root) =>
    ['/{keyId}', '/isvalid', '/ephemeral/isvalid'].map((path) => `GET ${root}/pubkey${path}`),
  ),
  ...['GET P1/lookup', 'POST P1/bulk_lookup', 'POST P1/validate/email/requestToken', 'GET P1/3pid/getValidated3pid'],
  ...['email', 'msisdn'].flatMap((medium) => ['GET', 'POST'].map((by) => `${by} P1/validate/${medium}/submitToken`)),
  ...['POST P1/validate/msisdn/requestToken', 'POST P1/3pid/bind', 'POST P1/3pid/unbind'],
  ...['POST P1/store-invite', 'POST P1/sign-ed25519'],
]
const BEFORE_TERMS = ['POST P2/account/logout', 'POST P2/terms']

/** Calls an operation with what it needs to be told apart from a bad call, and no more. */
function callOperation(line: string, by?: string) {
  const [method = '', path = ''] = line.split(' ')
  const query = path.endsWith('msisdn/submitToken') && method === 'GET' ? '?sid=a&client_secret=b&token=c' : ''
  const url = path.replace('P1', P1).replace('P2', P2).replace('{keyId}', 'ed25519:0') + query
  const body = path.endsWith('P2/unbind') || path.endsWith('P2/3pid/unbind') ? UNBIND : {}
  return identity.ask(method, url, { ...(method === 'POST' && { body }), ...(by !== undefined && { token: by }) })
}

const UNBIND = { mxid: '@a:elsewhere.test', threepid: { medium: 'email', address: 'a@b.test' } }

describe('seed 1, "Authentication" 1 and the column "Auth"', () => {
  it.each(NEEDS_TOKEN)(
    '%s: 401 without a token it knows, 403 M_TERMS_NOT_SIGNED before the terms are accepted',
    async (line) => {
      const refused = await callOperation(line)
      expect([refused.status, refused.body.errcode]).toEqual([401, 'M_UNAUTHORIZED'])
      const unknown = await callOperation(line, 'x')
      const errcode = line === 'POST P2/account/logout' ? 'M_UNKNOWN_TOKEN' : 'M_UNAUTHORIZED'
      expect([unknown.status, unknown.body.errcode]).toEqual([401, errcode])
      const gated = await callOperation(line, token)
      if (BEFORE_TERMS.includes(line)) expect(gated.body.errcode).not.toBe('M_TERMS_NOT_SIGNED')
      else expect([gated.status, gated.body.errcode]).toEqual([403, 'M_TERMS_NOT_SIGNED'])
      if (line === 'POST P2/account/logout') return
      await accept(PRIVACY, TERMS)
      expect((await callOperation(line, token)).body.errcode).not.toBe('M_TERMS_NOT_SIGNED')
    },
  )

  it.each(OPEN_TO_ALL)('%s: neither 401 nor 403 for anybody', async (line) => {
    expect([401, 403]).not.toContain((await callOperation(line)).status)
    expect([401, 403]).not.toContain((await callOperation(line, token)).status)
  })

  it('no operation is missing here; seed 1, "Limits" 1: none is rate-limited', () => {
    const lines = identityEndpoints.flatMap(({ method, path, options }) =>
      [path, ...(options.also ?? [])].map((each) => `${method} ${each}`),
    )
    const others = ['GET identity/versions']
    expect(new Set(lines.filter((line) => !others.some((other) => line.includes(other.slice(4)))))).toEqual(
      new Set([...NEEDS_TOKEN, ...OPEN_TO_ALL]),
    )
    expect(identityEndpoints.filter(({ options }) => options.limited !== undefined)).toEqual([])
  })
})

describe('seed 1, POST P2/terms', () => {
  it('one by one suffices: the server appends', async () => {
    expect(await accept(PRIVACY)).toMatchObject({ status: 200, body: {} })
    expect(await isAdmitted()).toBe(false)
    await accept(TERMS)
    expect(await isAdmitted()).toBe(true)
  })

  it('one language counts for all', async () => {
    await accept(PRIVACY_FR, TERMS_DE)
    expect(await isAdmitted()).toBe(true)
  })

  it('all languages of one policy do not count for another', async () => {
    await accept(PRIVACY, PRIVACY_FR)
    expect(await isAdmitted()).toBe(false)
  })

  it('counts for the user, not for the token or for others', async () => {
    await accept(PRIVACY, TERMS)
    expect(await isAdmitted(await newToken())).toBe(false)
  })

  it('facts 21: URLs of nobody are kept, up to a bound, and never in the way of real ones', async () => {
    for (let round = 0; round < 3; round++) {
      const urls = Array.from({ length: 100 }, (_, index) => `https://example.org/${round}/${index}`)
      expect(await accept(...urls)).toMatchObject({ status: 200, body: {} })
    }
    await accept('https://example.org/more', PRIVACY, TERMS, TERMS)
    expect(await isAdmitted()).toBe(true)
    const [row] = await server.db.query('SELECT count(*) AS count FROM identity_accepted_url WHERE url LIKE $1', [
      'https://example.org/_/%',
    ])
    expect(row).toEqual({ count: 100 })
  })

  it.each([
    ['{}', 'M_MISSING_PARAMS'],
    ['{"user_accepts":"https://example.org"}', 'M_INVALID_PARAM'],
    ['{"user_accepts":[1]}', 'M_INVALID_PARAM'],
    ['{"user_accepts":["a\\u0000"]}', 'M_INVALID_PARAM'],
    [JSON.stringify({ user_accepts: ['x'.repeat(2001)] }), 'M_INVALID_PARAM'],
    [JSON.stringify({ user_accepts: Array(101).fill('x') }), 'M_INVALID_PARAM'],
    ['[]', 'M_BAD_JSON'],
    ['', 'M_NOT_JSON'],
  ])('%.40s gives 400 %s', async (body, errcode) => {
    expect(await identity.ask('POST', '/terms', { token, body })).toMatchObject({ status: 400, body: { errcode } })
  })

  it('a new version of a policy is to be accepted again, also by who accepted the old one', async () => {
    await accept('https://x.test/1')
    const userId = `@user${users}:elsewhere.test` as UserId
    const termsOf = (...versions: string[]) => {
      const languages = versions.map((version, index) => ({
        language: ['en', 'fr'][index],
        name: 'P',
        url: `https://x.test/${version}`,
      }))
      const terms = { directory, policies: [{ id: 'p', version: '1', languages }] }
      const { config } = loadConfig({ values: { identity: { terms } }, directory })
      return createTerms({ config, db: server.db, clock: Date })
    }
    await expect(termsOf('2').require(userId)).rejects.toMatchObject({ errcode: 'M_TERMS_NOT_SIGNED' })
    await termsOf('2', '1').require(userId)
  })
})

describe('policies as configured', () => {
  it('cannot be started without the text of one that has no url', async () => {
    const terms = { directory: '/nowhere', policies: POLICIES }
    const { config } = loadConfig({ values: { identity: { terms } }, directory })
    await expect(requirePolicyTexts(config)).rejects.toThrow('/nowhere/terms_of_service-2.0-en.txt')
  })

  it('may come from the environment, as JSON', () => {
    const load = (text: string) => loadConfig({ env: { HEARTH__IDENTITY__TERMS__POLICIES: text }, directory })
    expect(load(JSON.stringify(POLICIES)).config.identity.terms.policies).toEqual(POLICIES)
    expect(() => load('privacy_policy')).toThrow('HEARTH__IDENTITY__TERMS__POLICIES: identity.terms.policies: expected')
    expect(() => load('[{"__proto__":{}}]')).toThrow('expected')
  })

  it('are refused with two of one id, and with what is no version', () => {
    const yaml = (text: string) => () => loadConfig({ file: { path: '/x/hearth.yaml', text }, directory })
    const policy = (id: string, version: string) =>
      `    - {id: ${id}, version: ${version}, languages: [{language: en, name: P, url: 'https://x.test'}]}\n`
    const head = 'identity:\n  terms:\n   policies:\n'
    expect(yaml(head + policy('p', '1.10'))().config.identity.terms.policies[0]?.version).toBe('1.10')
    expect(yaml(head + policy('p', '1') + policy('p', '2'))).toThrow(
      'hearth.yaml:3: identity.terms.policies: p is there',
    )
    expect(yaml(head + policy('p', 'a/b'))).toThrow('hearth.yaml:3: identity.terms.policies: expected a list')
    expect(yaml(head + policy('p', '1').replace('languages', 'language'))).toThrow('languages')
  })
})

describe('the page of a policy', () => {
  const page = async (path: string) => {
    const answer = await fetch(server.baseUrl + path)
    return { status: answer.status, headers: answer.headers, html: await answer.text() }
  }

  it('is where its URL says, readable without script or anything from elsewhere', async () => {
    const { status, headers, html } = await page(new URL(TERMS).pathname)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(html).toContain('<html lang="en">')
    expect(html).toContain('prefers-color-scheme: dark')
    expect(html).toContain('<h2>What we keep</h2>')
    expect(html).toContain('<a href="https://example.org/a?b=1&#38;c=2">')
    expect(html).toContain('<li>&#60;script&#62;two&#60;/script&#62;</li>')
    expect(html).not.toContain('<script')
    expect(html).toContain(`hreflang="de" href="${TERMS_DE}">Nutzungs&#60;b&#62;bedingungen</a>`)
  })

  it('is in its language', async () => {
    const { html } = await page(new URL(TERMS_DE).pathname)
    expect(html).toContain('<html lang="de">')
    expect(html).toContain('<p>Kurz.</p>\n<p>Und gut.</p>')
  })

  it.each([
    '/identity/policies/terms_of_service/2.0/fr',
    '/identity/policies/terms_of_service/1.0/en',
    '/identity/policies/privacy_policy/1.2/en',
    '/identity/policies/..%2fterms_of_service/2.0/en',
    '/identity/policies/constructor/2.0/en',
  ])('%s: 404 M_NOT_FOUND', async (path) => {
    const { status, html } = await page(path)
    expect([status, JSON.parse(html).errcode]).toEqual([404, 'M_NOT_FOUND'])
  })
})
