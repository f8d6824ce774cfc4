import { afterAll, beforeAll, expect, test } from 'vitest'
import { openApi } from '../../support/api.ts'
import { startServer } from '../../support/server.ts'
import { ADMIN, macOf, type Office, openOffice, registerBySecret, SECRET } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

const PASSWORD = 'a password of some length'
const nonce = async (): Promise<string> => (await office.api.call('GET', `${ADMIN}/v1/register`)).nonce
const post = (body: object) => office.api.request('POST', `${ADMIN}/v1/register`, { body })

async function request(username: string, changes: object = {}, secret = SECRET) {
  const request = { nonce: await nonce(), username, password: PASSWORD, admin: false, ...changes }
  return { ...request, mac: macOf(request.nonce, request.username, request.password, request.admin, secret) }
}

test('an account and a login are made, with the display name that is asked for', async () => {
  const { status, body } = await post({ ...(await request('pepper_roni')), displayname: 'Pepper Roni' })
  expect(status).toBe(200)
  expect(body).toEqual({
    user_id: '@pepper_roni:localhost',
    home_server: 'localhost',
    access_token: expect.any(String),
    device_id: expect.any(String),
  })
  expect(await office.api.call('GET', '/profile/@pepper_roni:localhost')).toMatchObject({ displayname: 'Pepper Roni' })
  expect(await office.call('GET', '/v1/users/@pepper_roni:localhost/admin')).toEqual({ admin: false })
  const who = await office.api.call('GET', '/account/whoami', { token: body.access_token })
  expect(who.user_id).toBe('@pepper_roni:localhost')
})

test('a nonce is good once, also when many use it at once', async () => {
  const good = await request('once')
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(good)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  const { status, body } = await post(good)
  expect([status, body.errcode, body.error]).toEqual([400, 'M_UNKNOWN', expect.stringContaining('nonce')])
})

test('a nonce that was used is spent after a restart too', async () => {
  const own = await openOffice()
  try {
    const { nonce } = await own.api.call('GET', `${ADMIN}/v1/register`)
    const body = { nonce, username: 'u', password: PASSWORD, mac: macOf(nonce, 'u', PASSWORD, false) }
    expect((await own.api.request('POST', `${ADMIN}/v1/register`, { body })).status).toBe(200)
    await own.server.restart()
    const again = { ...body, username: 'v', mac: macOf(nonce, 'v', PASSWORD, false) }
    expect((await own.api.request('POST', `${ADMIN}/v1/register`, { body: again })).status).toBe(400)
  } finally {
    await own.close()
  }
})

test.each([
  ['of another secret', async () => request('mallory', {}, 'some other secret of theirs')],
  ['for another user', async () => ({ ...(await request('mallory')), username: 'eve' })],
  ['for another password', async () => ({ ...(await request('mallory')), password: 'another password entirely' })],
  ['for no administrator', async () => ({ ...(await request('mallory')), admin: true })],
  ['that is empty', async () => ({ ...(await request('mallory')), mac: '' })],
  ['that is very long', async () => ({ ...(await request('mallory')), mac: 'a'.repeat(50_000) })],
  ['with letters of several bytes', async () => ({ ...(await request('mallory')), mac: 'é'.repeat(20) })],
])('a mac %s is refused', async (_, make) => {
  const { status, body } = await post(await make())
  expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  expect((await office.ask('GET', '/v2/users/@mallory:localhost')).status).toBe(404)
})

test('a NUL does not move the border between name and password', async () => {
  const { nonce, mac } = await request('bob', { password: 'x\0a password of some length' })
  const moved = { nonce, username: 'bob\0x', password: 'a password of some length', mac }
  for (const body of [moved, { nonce, username: 'bob', password: 'x\0a password of some length', mac }]) {
    expect(await post(body)).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  }
})

test.each([
  ['of our own making', '1.2.3'],
  ['that is empty', ''],
  ['that is very long', 'n'.repeat(50_000)],
])('a nonce %s is refused', async (_, text) => {
  const mac = macOf(text, 'mallory', PASSWORD, true)
  const answer = await post({ nonce: text, username: 'mallory', password: PASSWORD, admin: true, mac })
  expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_UNKNOWN' } })
})

test('names, passwords and their lengths are judged as for anybody', async () => {
  for (const [changes, errcode] of [
    [{ username: 'not a name' }, 'M_INVALID_USERNAME'],
    [{ username: 'n'.repeat(300) }, 'M_INVALID_USERNAME'],
    [{ username: 'n'.repeat(10_000) }, 'M_INVALID_PARAM'],
    [{ password: 'short' }, 'M_WEAK_PASSWORD'],
    [{ password: 'p'.repeat(10_000) }, 'M_INVALID_PARAM'],
    [{ username: 'boss' }, 'M_USER_IN_USE'],
  ] as const) {
    expect((await post(await request('somebody', changes))).body.errcode).toBe(errcode)
  }
  const { mac: _, ...rest } = await request('somebody')
  expect(await post(rest)).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAM' } })
})

test('without the option there is no nonce to be had', async () => {
  const server = await startServer()
  const api = openApi(server.baseUrl)
  try {
    for (const [method, body] of [
      ['GET', undefined],
      ['POST', await request('x')],
    ] as const) {
      const answer = await api.request(method, `${ADMIN}/v1/register`, { body })
      expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining('shared_secret') } })
    }
  } finally {
    await api.close()
    await server.close()
  }
})

test('it is on the record, without a secret', async () => {
  await registerBySecret(office.api, 'recorded', true)
  const [act] = (await office.call('GET', '/_hearth/admin/v1/acts?limit=1')).acts
  expect(act).toMatchObject({
    actor: 'shared secret',
    act: 'register an administrator',
    target: '@recorded:localhost',
    outcome: 'done',
  })
})
