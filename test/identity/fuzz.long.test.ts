import { afterAll, beforeAll, expect, it } from 'vitest'
import { ERROR_STATUS } from '../../src/core/errors.ts'
import { expandPath } from '../../src/core/paths.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { identityEndpoints, identityPages } from '../../src/routes/identity/index.ts'
import { schemaOf } from '../http/fuzz/body.ts'
import { BODIES, type Dice, diceOf, JSON_VALUES, PATH_VALUES, QUERY_VALUES } from '../http/fuzz/values.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Answer, openIdentity } from './identity-api.ts'

/** `FUZZ_SEED=7 FUZZ_CASES=10000 npx vitest run test/identity/fuzz.long.test.ts` tries other cases, and more of them. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_190_611)
const CASES = Number(process.env.FUZZ_CASES ?? 40)

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

let server: AccountServer
let token: string

beforeAll(async () => {
  server = await startAccountServer(
    {},
    { openIdVerifier: { subjectOf: async (name) => (name === 'elsewhere.test' ? '@bob:elsewhere.test' : undefined) } },
  )
  token = await newToken()
})

afterAll(() => server.close())

async function newToken(): Promise<string> {
  const body = { access_token: 'x', matrix_server_name: 'elsewhere.test' }
  const { ask } = openIdentity(server.baseUrl)
  return (await ask('POST', '/_matrix/identity/v2/account/register', { body })).body.token
}

/** A value that an endpoint could mean, for parameters of these names. */
const PLAUSIBLE: Readonly<Record<string, readonly string[]>> = {
  client_secret: ['secret', 'secret\n', '__proto__'],
  sid: ['1', 'x'],
  token: ['123456'],
  email: ['alice@example.org', 'a@b@c', 'a@b\r\nBcc: c@d', 'Strauß@Example.com'],
  country: ['GB', 'gb', 'ZZ'],
  phone_number: ['07700900001', '+447700900001'],
  next_link: ['https://example.org/', 'javascript:alert(1)'],
  medium: ['email', 'msisdn', 'pigeon'],
  address: ['alice@example.org', '447700900001'],
  mxid: ['@bob:elsewhere.test', '@a:b:elsewhere.test'],
  algorithm: ['sha256', 'none'],
  pepper: ['pepper'],
  proto_server_name: ['elsewhere.test', 'nowhere.test', '[::1'],
  matrix_server_name: ['elsewhere.test'],
  public_key: ['A'.repeat(43)],
  private_key: ['A'.repeat(43), 'A'],
  room_id: ['!room:elsewhere.test'],
  sender: ['@bob:elsewhere.test'],
}

const plausible = (name: string, dice: Dice): string => dice.pick(PLAUSIBLE[name] ?? ['x', '1'])

/** Each name has its value twice in three times, so that what stands behind the first checks is reached. */
function pairs(names: readonly string[], dice: Dice): string {
  return names
    .filter(() => dice.below(8) > 0)
    .map((name) => `${name}=${dice.below(3) > 0 ? encodeURIComponent(plausible(name, dice)) : dice.pick(QUERY_VALUES)}`)
    .join('&')
}

function jsonBody(endpoint: Endpoint, dice: Dice): string {
  const properties = Object.entries(schemaOf(endpoint.options.body)?.properties ?? {})
  const members = properties
    .filter(() => dice.below(8) > 0)
    .map(([name, { type }]) => {
      const usual = type === 'integer' ? String(dice.below(5)) : type === 'array' ? '["x"]' : undefined
      const value = dice.below(3) > 0 ? (usual ?? JSON.stringify(plausible(name, dice))) : dice.pick(JSON_VALUES)
      return `${JSON.stringify(name)}:${value}`
    })
  return `{${members.join()}}`
}

interface Sent {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | null
}

function caseOf(endpoint: Endpoint, dice: Dice): Sent {
  const { options, method } = endpoint
  const { path } = dice.pick([endpoint.path, ...(options.also ?? [])].flatMap(expandPath))
  const url = path.replace(/:\w+/g, () => dice.pick(PATH_VALUES))
  const names = Object.keys({ ...schemaOf(options.query)?.properties, ...schemaOf(options.body)?.properties })
  const query = dice.below(method === 'GET' ? 8 : 3) > 0 ? pairs(names, dice) : ''
  const isForm = dice.below(4) === 0
  const whole = dice.below(6) === 0 ? dice.pick(BODIES)[1] : undefined
  const body = method === 'GET' ? null : (whole ?? (isForm ? pairs(names, dice) : jsonBody(endpoint, dice)))
  const bearer = dice.below(10) > 0 ? { authorization: `Bearer ${token}` } : {}
  return { path: `${url}?${query}`, body, headers: { ...bearer, ...(isForm && FORM) } }
}

function faultsOf({ status, headers, body }: Answer): string[] {
  const faults: string[] = []
  if (status >= 500) faults.push('is our fault')
  if (headers.get('access-control-allow-origin') !== '*') faults.push('has no CORS headers')
  if (status < 400 || headers.get('content-type')?.startsWith('text/html')) return faults
  if (!(body?.errcode in ERROR_STATUS)) faults.push(`has the errcode ${body?.errcode}`)
  if (typeof body?.error !== 'string' || body.error === '') faults.push('has no error text')
  return faults
}

const ENDPOINTS = [...identityEndpoints, ...identityPages].map((endpoint): [string, Endpoint] => [
  `${endpoint.method} ${endpoint.path}`,
  endpoint,
])

it.each(ENDPOINTS)(
  '%s, asked badly, is never our fault',
  async (line, endpoint) => {
    const dice = diceOf(SEED, line)
    const { ask } = openIdentity(server.baseUrl)
    const faults: string[] = []
    for (let round = 0; round < CASES; round++) {
      const { path, headers, body } = caseOf(endpoint, dice)
      const answer = await ask(endpoint.method, path, { headers, ...(body !== null && { body: body as string }) })
      const found = faultsOf(answer)
      if (found.length > 0) faults.push(`${found.join(', ')}: ${path.slice(0, 300)} ${String(body).slice(0, 300)}`)
      if (line.endsWith('logout') && answer.status === 200) token = await newToken()
    }
    expect(faults).toEqual([])
  },
  60_000 + CASES * 100,
)

it('the log holds no failure and no token', () => {
  const log = server.logged()
  expect(log.split('\n').filter((line) => line !== '' && JSON.parse(line).level >= 50)).toEqual([])
  expect(log).not.toContain(token)
})
