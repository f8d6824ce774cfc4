import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Api, type Json, openApi, PASSWORD } from '../../support/api.ts'

let server: AccountServer
let api: Api

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const DUMMY = { type: 'm.login.dummy' }

const register = (body: Json) => api.request('POST', '/register', { body })

/** A session that wants an account of this name, its dummy stage completed elsewhere as on a fallback page. */
async function sessionOf(username: string, more: object = {}): Promise<string> {
  const { status, body } = await register({ username, password: PASSWORD, ...more })
  expect(status).toBe(401)
  return body.session
}

test('C3: a registration sends its session alone, and the first body counts', async () => {
  const session = await sessionOf('alone', { device_id: 'FIRST', initial_device_display_name: 'phone' })
  const { status, body } = await register({ auth: { ...DUMMY, session } })
  expect([status, body.user_id, body.device_id]).toEqual([200, '@alone:localhost', 'FIRST'])
  const identifier = { type: 'm.id.user', user: 'alone' }
  const login = { type: 'm.login.password', identifier, password: PASSWORD }
  expect(await api.request('POST', '/login', { body: login })).toMatchObject({ status: 200 })
})

test('C3: a session whose stages were completed elsewhere is finished by {auth: {session}}', async () => {
  const session = await sessionOf('elsewhere')
  await server.services.interactiveAuth.complete(session, 'm.login.dummy', {})
  const answer = await register({ auth: { session } })
  expect(answer).toMatchObject({ status: 200, body: { user_id: '@elsewhere:localhost' } })
})

test('C3: a session alone that nobody wanted anything in asks for what is missing', async () => {
  const { body } = await register({})
  const answer = await register({ auth: { ...DUMMY, session: body.session } })
  expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAM' } })
})

test('C3: a finished session sent again gives the same user and device, with the body or alone', async () => {
  const session = await sessionOf('again')
  const whole = { username: 'again', password: PASSWORD, auth: { ...DUMMY, session } }
  const first = await register(whole)
  for (const body of [whole, { auth: { session } }, { auth: { ...DUMMY, session } }]) {
    const { status, body: same } = await register(body)
    expect([status, same.user_id, same.device_id]).toEqual([200, first.body.user_id, first.body.device_id])
    const me = await api.call('GET', '/account/whoami', { token: same.access_token })
    expect(me.user_id).toBe('@again:localhost')
  }
})

test('C3: a finished session makes no login where none was wanted', async () => {
  const session = await sessionOf('quiet', { inhibit_login: true })
  const first = await register({ auth: { ...DUMMY, session } })
  expect(first.body).toEqual({ user_id: '@quiet:localhost', home_server: 'localhost' })
  expect(await register({ auth: { session } })).toEqual(first)
})

test('C3: a finished session is worth nothing with another body, or once its device was logged out', async () => {
  const session = await sessionOf('ended')
  const { body } = await register({ auth: { ...DUMMY, session } })
  const other = { username: 'other', password: PASSWORD, auth: { ...DUMMY, session } }
  expect((await register(other)).status).toBe(401)
  await api.call('POST', '/logout', { token: body.access_token, body: {} })
  expect((await register({ auth: { ...DUMMY, session } })).status).toBe(401)
})

test('C3: what is kept of the first body is not readable in the database', async () => {
  await register({ username: 'sealed', password: 'canary-password-3' })
  const rows = await server.db.query<{ row: string; body: Buffer | null }>(
    'SELECT t::text AS row, body FROM uia_session t',
  )
  expect(rows.some(({ body }) => body !== null)).toBe(true)
  for (const { row, body } of rows) {
    expect(row).not.toContain('canary-password')
    expect(body?.toString('latin1') ?? '').not.toContain('canary-password')
  }
})

test('C3: the 401 of interactive authentication always names what is completed', async () => {
  const { body } = await register({ username: 'lists', password: PASSWORD })
  expect(body.completed).toEqual([])
  const token = (await register({ username: 'lists', password: PASSWORD, auth: DUMMY })).body.access_token
  const { status, body: challenge } = await api.request('POST', '/delete_devices', { token, body: { devices: ['X'] } })
  expect([status, challenge.completed]).toEqual([401, []])
})
