import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DIALECTS, expandPath } from '../../src/core/paths.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { registration } from '../appservices/world.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Api, type Json, openApi, PASSWORD, register } from '../support/api.ts'
import { CLIENT_API } from '../support/interfaces.ts'

let server: AccountServer
let directory: string
const bridge = registration('bridge')
let api: Api
let tokens: Record<'expired' | 'renewedElsewhere' | 'deactivated' | 'guest' | 'other', string>

/** Names what nothing is said of. */
const ANY = 'x'

const auth = (user: string) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: PASSWORD,
})

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-actors-'))
  await writeFile(join(directory, 'bridge.yaml'), JSON.stringify(bridge))
  server = await startAccountServer({ application_services: { registrations: [directory] } })
  api = openApi(server.baseUrl)
  await register(api, 'alice')
  const refreshing = () => api.call('POST', '/login', { body: { ...auth('alice'), refresh_token: true } })
  const [expired, stolen] = [await refreshing(), await refreshing()]
  server.advance(6 * 60_000)
  const renewed = await api.call('POST', '/refresh', { body: { refresh_token: stolen.refresh_token } })
  await api.call('GET', '/account/whoami', { token: renewed.access_token })
  await api.request('POST', '/refresh', { body: { refresh_token: stolen.refresh_token } })
  const gone = await register(api, 'gone')
  await api.call('POST', '/account/deactivate', { token: gone.token, body: { auth: auth('gone') } })
  // A service makes the device that it writes to for the first time, which one of the dialects would tell.
  await api.call('PUT', `/devices/${ANY}`, { token: bridge.as_token, body: {} })
  tokens = {
    expired: expired.access_token,
    renewedElsewhere: renewed.access_token,
    deactivated: gone.token,
    guest: (await api.call('POST', '/register?kind=guest', { body: {} })).access_token,
    other: (await register(api, 'other')).token,
  }
})

afterAll(async () => {
  await api.close()
  await server.close()
  await rm(directory, { recursive: true })
})

interface Answer {
  readonly status: number
  readonly errcode: string | undefined
  readonly softLogout: unknown
}

const PARAMS: Readonly<Record<string, string>> = {
  userId: '@alice:localhost',
  roomId: '!room:localhost',
  eventId: '$event',
  roomAlias: '#alias:localhost',
}
const urlOf = (path: string) => path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(PARAMS[name] ?? ANY))

/** Asked under both dialects, which must answer the same; or under those that are named. */
async function ask(
  { method, path }: Endpoint,
  authorization?: string,
  body?: Json,
  query = '',
  dialects: readonly string[] = DIALECTS,
): Promise<Answer> {
  const paths = expandPath(path)
  const urls = dialects.flatMap((dialect) => paths.find((one) => one.dialect === dialect) ?? [])
  const answers = await Promise.all(
    urls.map(async ({ path: url }) => {
      const answer = await fetch(server.baseUrl + urlOf(url) + query, {
        method,
        redirect: 'manual',
        headers: authorization === undefined ? {} : { authorization },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const text = await answer.text()
      const json: Json = text.startsWith('{') ? JSON.parse(text) : {}
      return { status: answer.status, errcode: json.errcode, softLogout: json.soft_logout }
    }),
  )
  for (const answer of answers) expect(answer).toEqual(answers[0])
  return answers[0]!
}

const line = ({ method, path }: Endpoint): [string] => [`${method} ${path}`]
const named = (name: string): Endpoint => CLIENT_API.find((endpoint) => line(endpoint)[0] === name)!
const withAuth = (...kinds: string[]) => CLIENT_API.filter(({ options }) => kinds.includes(options.auth)).map(line)
const X_MATRIX = 'X-Matrix origin="peer.example",destination="localhost",key="ed25519:1",sig="AAAA"'

describe.each(withAuth('user'))('%s', (name) => {
  const endpoint = named(name)

  it('wants a token: of nobody, and of a server that signs instead, M_MISSING_TOKEN', async () => {
    expect(await ask(endpoint)).toMatchObject({ status: 401, errcode: 'M_MISSING_TOKEN' })
    expect(await ask(endpoint, X_MATRIX)).toMatchObject({ status: 401, errcode: 'M_MISSING_TOKEN' })
  })

  it('takes none that is unknown, of a deactivated user, or renewed elsewhere; an expired one is a soft logout', async () => {
    const refused = { status: 401, errcode: 'M_UNKNOWN_TOKEN' }
    for (const token of ['hearth_nonsense', tokens.deactivated, tokens.renewedElsewhere]) {
      const answer = await ask(endpoint, `Bearer ${token}`)
      expect(answer).toMatchObject(refused)
      expect(answer.softLogout).toBeUndefined()
    }
    expect(await ask(endpoint, `Bearer ${tokens.expired}`)).toEqual({ ...refused, softLogout: true })
  })

  it(`${endpoint.options.guests ? 'lets guests in' : 'sends guests away: M_GUEST_ACCESS_FORBIDDEN'}`, async () => {
    // What ends a session must not end the one that all others are asked with.
    if (/logout/.test(name)) return
    const answer = await ask(endpoint, `Bearer ${tokens.guest}`)
    if (endpoint.options.guests) expect(answer.errcode).not.toBe('M_GUEST_ACCESS_FORBIDDEN')
    else expect(answer).toMatchObject({ status: 403, errcode: 'M_GUEST_ACCESS_FORBIDDEN' })
  })
})

/** Under `/_proto` these want a token, or an address that is shown (seed 2). */
const WANT_TOKEN_IN_PROTO = new Set(['POST C/account/password', 'POST C/account/deactivate'])

describe.each(withAuth('optional'))('%s', (name) => {
  it('needs no token, but takes no bad one', async () => {
    const body = name.startsWith('GET') ? undefined : {}
    const dialects = WANT_TOKEN_IN_PROTO.has(name) ? ['matrix'] : DIALECTS
    expect((await ask(named(name), undefined, body, '', dialects)).errcode).not.toBe('M_MISSING_TOKEN')
    for (const token of [tokens.deactivated, tokens.renewedElsewhere, tokens.expired]) {
      expect(await ask(named(name), `Bearer ${token}`)).toMatchObject({ status: 401, errcode: 'M_UNKNOWN_TOKEN' })
    }
  })
})

describe.each(withAuth('none'))('%s', (name) => {
  it('asks nobody for a token, whatever is sent as one', async () => {
    for (const authorization of [undefined, `Bearer ${tokens.deactivated}`, X_MATRIX]) {
      const { errcode } = await ask(named(name), authorization)
      if (name !== 'POST C/refresh') expect(errcode).not.toBe('M_UNKNOWN_TOKEN')
      expect(errcode).not.toBe('M_MISSING_TOKEN')
    }
  })
})

const BRIDGE = `Bearer ${bridge.as_token}`

describe.each(withAuth('user', 'optional'))('%s, by an application service', (name) => {
  it('refuses users outside its namespaces, and of its own those without an account: M_FORBIDDEN', async () => {
    for (const user of ['@alice:localhost', '@_bridge_nobody:localhost', '@_bridge_x:elsewhere.example', 'alice']) {
      const answer = await ask(named(name), BRIDGE, undefined, `?user_id=${encodeURIComponent(user)}`)
      expect(answer).toMatchObject({ status: 403, errcode: 'M_FORBIDDEN' })
    }
  })

  it('takes its token for its own user, and no other for it', async () => {
    // What ends an account must not end the one that all others are asked with.
    if (/logout|deactivate/.test(name)) return
    const { errcode } = await ask(named(name), BRIDGE, name.startsWith('GET') ? undefined : {})
    expect(errcode).not.toBe('M_UNKNOWN_TOKEN')
    const wrong = await ask(named(name), `Bearer ${bridge.hs_token}`)
    expect(wrong).toMatchObject({ status: 401, errcode: 'M_UNKNOWN_TOKEN' })
  })
})

const OWN = /^(?:\w+ C\/user\/\{userId\}\/|(?:PUT|DELETE) C\/profile\/\{userId\}|PUT C\/presence\/)/
describe.each(withAuth('user').filter(([name]) => OWN.test(name)))('%s', (name) => {
  it("is not another user's: M_FORBIDDEN", async () => {
    const body = { displayname: 'x', presence: 'online', x: 'x' }
    const sent = name.startsWith('GET') ? undefined : body
    expect(await ask(named(name), `Bearer ${tokens.other}`, sent)).toMatchObject({
      status: 403,
      errcode: 'M_FORBIDDEN',
    })
  })
})
