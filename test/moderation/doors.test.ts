import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Office, openOffice } from '../admin/office.ts'
import { openFront } from '../sso/front.ts'
import { CLIENT, openTestProvider, type TestProvider } from '../sso/provider.ts'
import { passProvider } from '../sso/without-browser.ts'
import { type Json, register } from '../support/api.ts'
import { createAuthority } from '../support/certificate.ts'
import { BASE, hasSlapd, type Slapd, startSlapd } from '../support/slapd.ts'

const SECRET = 'a secret of thirty-two characters.'

let service: Server
let front: Awaited<ReturnType<typeof openFront>>
let provider: TestProvider
let slapd: Slapd | undefined
let office: Office
let refused: string | undefined

const authority = createAuthority()
const enc = encodeURIComponent
const login = (body: object) => office.api.request('POST', '/login', { body })

/** The ways in which somebody without an account gets one. Each gives the answer to the login, or the page instead of one. */
const DOORS: Record<string, (name: string) => Promise<{ status: number; body: Json }>> = {
  'a registration': (name) =>
    register(office.api, name).then(
      ({ token, userId }) => ({ status: 200, body: { access_token: token, user_id: userId } }),
      (error: Error) => ({ status: 403, body: { error: error.message } }),
    ),
  async 'a JSON Web Token'(name) {
    const token = await new SignJWT({ sub: name, exp: Math.floor(Date.now() / 1000) + 60 })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(SECRET))
    return login({ type: 'org.matrix.login.jwt', token })
  },
  async 'single sign-on'(name) {
    provider.people[name] = { preferred_username: name }
    const path = '/_matrix/client/v3/login/sso/redirect?redirectUrl=element%3A%2F%2Fconnect'
    const begun = await fetch(`${office.server.baseUrl}${path}`, { redirect: 'manual' })
    const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? ''
    const callback = await passProvider(new URL(begun.headers.get('location') ?? ''), name)
    const answer = await fetch(callback, { headers: { cookie } })
    const page = await answer.text()
    const token = /loginToken=(hearth_login_[\w-]+)/.exec(page)?.[1]
    return token === undefined
      ? { status: answer.status, body: { error: page } }
      : login({ type: 'm.login.token', token })
  },
  'a directory': (name) =>
    login({ type: 'm.login.password', identifier: { type: 'm.id.user', user: name }, password: 'rabbit hole' }),
}
const DOOR_NAMES = Object.keys(DOORS).filter((door) => door !== 'a directory' || hasSlapd())

beforeAll(async () => {
  service = createServer((request, reply) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { username } = JSON.parse(Buffer.concat(parts).toString())
      reply.writeHead(username !== undefined && username === refused ? 403 : 200)
      reply.end(JSON.stringify({ error: 'Not here.' }))
    })
  }).listen(0, '127.0.0.1')
  await once(service, 'listening')
  front = await openFront({ host: 'localhost' })
  provider = await openTestProvider(`${front.origin}/_hearth/sso/callback`)
  const people = ['ada3', 'eve3'].map((uid) => ({ uid, cn: uid, password: 'rabbit hole' }))
  if (hasSlapd()) slapd = await startSlapd(people, authority.issue(['localhost']))
  const { id: client_id, secret: client_secret } = CLIENT
  office = await openOffice({
    public_base_url: front.origin,
    jwt: { secret: SECRET },
    ...(slapd && { ldap: { url: `ldap://127.0.0.1:${slapd.port}`, base_dn: BASE } }),
    sso: { providers: [{ id: 'example', name: 'Example', issuer: provider.issuer, client_id, client_secret }] },
    registration: { approval: true },
    moderation: { antispam: { url: `http://127.0.0.1:${(service.address() as AddressInfo).port}` } },
  } as never)
  front.lead(Number(new URL(office.server.baseUrl).port))
})

afterAll(async () => {
  await office?.close()
  await provider?.close()
  await front?.close()
  await slapd?.close()
  authority.remove()
  service?.close()
})

describe.each(DOOR_NAMES)('a new account by %s', (door) => {
  const number = Object.keys(DOORS).indexOf(door)

  test('waits for an operator', async () => {
    const userId = `@ada${number}:localhost`
    const entered = await DOORS[door]!(`ada${number}`)
    // Who registers is signed in at once, and can do nothing.
    const { access_token: token } = entered.body
    const locked = token ? await office.api.request('GET', '/account/whoami', { token }) : entered
    expect([locked.status, locked.body.errcode]).toEqual([401, 'M_USER_LOCKED'])
    const { accounts } = await office.call('GET', '/_hearth/admin/v1/approvals')
    expect(accounts.map((account: Json) => account.user_id)).toContain(userId)
    await office.call('POST', `/_hearth/admin/v1/approvals/${enc(userId)}/approve`)
    const inside = token
      ? await office.api.request('GET', '/account/whoami', { token })
      : await DOORS[door]!(`ada${number}`)
    expect([inside.status, inside.body.user_id]).toEqual([200, userId])
  })

  test('is refused where the antispam service says so', async () => {
    refused = `eve${number}`
    const { status, body } = await DOORS[door]!(refused)
    expect([status, JSON.stringify(body)]).toEqual([403, expect.stringContaining('Not here.')])
    expect((await office.ask('GET', `/v2/users/${enc(`@${refused}:localhost`)}`)).status).toBe(404)
  })
})
