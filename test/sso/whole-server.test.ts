import { afterAll, beforeAll, expect, it } from 'vitest'
import { openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { openFront } from './front.ts'
import { CLIENT, openTestProvider, type TestProvider } from './provider.ts'
import { passProvider } from './without-browser.ts'

let front: Awaited<ReturnType<typeof openFront>>
let provider: TestProvider
let open: TestServer
let closed: TestServer

beforeAll(async () => {
  front = await openFront({ host: 'localhost' })
  provider = await openTestProvider(`${front.origin}/_hearth/sso/callback`)
  provider.people.alice = { preferred_username: 'alice' }
  const { id: client_id, secret: client_secret } = CLIENT
  const sso = { providers: [{ id: 'example', name: 'Example', issuer: provider.issuer, client_id, client_secret }] }
  const values = { sso, public_base_url: front.origin }
  open = await startServer({ ...values, outbound: { allow_ranges: ['127.0.0.0/8'] } })
  closed = await startServer({ ...values, outbound: { allow_ranges: [] } })
  front.lead(Number(new URL(open.baseUrl).port))
})

afterAll(async () => {
  await open?.close()
  await closed?.close()
  await provider?.close()
  await front?.close()
})

const begin = ({ baseUrl }: TestServer) =>
  fetch(`${baseUrl}/_matrix/client/v3/login/sso/redirect?redirectUrl=element%3A%2F%2Fconnect`, { redirect: 'manual' })

it('calls a provider through the guarded client only', async () => {
  const refused = await begin(closed)
  expect([refused.status, refused.headers.get('location')]).toEqual([502, null])
  const allowed = await begin(open)
  expect(allowed.status).toBe(302)
  expect(allowed.headers.get('location')).toContain(`${provider.issuer}/auth?`)
})

it('survives a restart in the middle of a sign-in', async () => {
  const begun = await begin(open)
  const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? ''
  const callback = await passProvider(new URL(begun.headers.get('location') ?? ''), 'alice')
  await open.restart()
  const answer = await fetch(callback, { headers: { cookie } })
  const page = await answer.text()
  const token = /loginToken=(hearth_login_[\w-]+)/.exec(page)?.[1]
  await open.restart()
  const api = openApi(open.baseUrl)
  const session = await api.call('POST', '/login', { body: { type: 'm.login.token', token } })
  expect(session.user_id).toBe('@alice:localhost')
  // Without a password there is one way to prove who one is.
  const { flows } = (
    await api.request('DELETE', `/devices/${session.device_id}`, { token: session.access_token, body: {} })
  ).body
  expect(flows).toEqual([{ stages: ['m.login.sso'] }])
  await api.close()
})

it('begins nothing with a provider that is not what it should be', async () => {
  for (const published of [{ issuer: 'https://evil.test' }, { authorization_endpoint: 5 }]) {
    provider.published = published
    await open.restart()
    expect((await begin(open)).status, JSON.stringify(published)).toBe(502)
  }
  provider.published = {}
  expect((await begin(open)).status).toBe(302)
})

it('asks for a new account where the provider knows what that is', async () => {
  const prompt = async (action: string): Promise<string | null> => {
    const query = `redirectUrl=element%3A%2F%2Fconnect&action=${action}`
    const answer = await fetch(`${open.baseUrl}/_proto/client/r0/login/sso/redirect?${query}`, { redirect: 'manual' })
    return new URL(answer.headers.get('location') ?? '').searchParams.get('prompt')
  }
  expect(await prompt('register')).toBeNull()
  provider.published = { prompt_values_supported: ['none', 'login', 'create'] }
  await open.restart()
  expect([await prompt('register'), await prompt('login')]).toEqual(['create', null])
})
