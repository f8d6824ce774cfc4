import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_PUSHERS_PER_USER } from '../../src/domain/limits/pushers.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, login, openApi, PASSWORD, register } from '../support/api.ts'

let server: AccountServer
let api: Api
let alice: Account
let bob: Account

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})

afterAll(async () => {
  await api?.close()
  await server?.close()
})

const GATEWAY = 'https://push.example.org/_matrix/push/v1/notify'

const wish = (more: Json = {}) => ({
  ...{ kind: 'http', app_id: 'org.app', pushkey: 'a key', app_display_name: 'App', device_display_name: 'Phone' },
  ...{ lang: 'en', data: { url: GATEWAY } },
  ...more,
})
const set = (who: Account, body: Json) => api.request('POST', '/pushers/set', { token: who.token, body })
const list = async (who: Account): Promise<Json[]> => (await api.call('GET', '/pushers', { token: who.token })).pushers
const keys = async (who: Account) => (await list(who)).map(({ pushkey }) => pushkey)

describe('a pusher', () => {
  it('is set, shown, changed and deleted', async () => {
    const data = { url: GATEWAY, format: 'event_id_only', 'org.x': { deep: [1, null] } }
    expect(await set(alice, wish({ profile_tag: 'xyz', data }))).toEqual({ status: 200, body: {} })
    const shown = {
      ...{ ...wish({ data }), profile_tag: 'xyz', 'org.matrix.msc3881.enabled': true },
      'org.matrix.msc3881.device_id': alice.deviceId,
    }
    expect(await list(alice)).toEqual([shown])
    await set(alice, wish({ lang: 'de', 'org.matrix.msc3881.enabled': false }))
    const changed = { ...wish({ lang: 'de' }), 'org.matrix.msc3881.enabled': false }
    expect(await list(alice)).toEqual([{ ...changed, 'org.matrix.msc3881.device_id': alice.deviceId }])
    expect(await list(bob)).toEqual([])
    expect(await set(alice, { kind: null, app_id: 'org.app', pushkey: 'a key' })).toEqual({ status: 200, body: {} })
    expect(await list(alice)).toEqual([])
    expect(await set(alice, { kind: null, app_id: 'org.app', pushkey: 'a key' })).toEqual({ status: 200, body: {} })
  })

  it.each([
    ['another kind', { kind: 'sms' }, 'M_INVALID_PARAM'],
    ['no names', { app_display_name: undefined, lang: undefined }, 'M_MISSING_PARAM'],
    ['no data', { data: undefined }, 'M_MISSING_PARAM'],
    ['no url', { data: {} }, 'M_MISSING_PARAM'],
    ['a url without TLS', { data: { url: GATEWAY.replace('https', 'http') } }, 'M_INVALID_PARAM'],
    ['another path', { data: { url: 'https://push.example.org/notify' } }, 'M_INVALID_PARAM'],
    ['a longer path', { data: { url: `${GATEWAY}/` } }, 'M_INVALID_PARAM'],
    ['a query', { data: { url: `${GATEWAY}?a=b` } }, 'M_INVALID_PARAM'],
    ['a user', { data: { url: GATEWAY.replace('//', '//me@') } }, 'M_INVALID_PARAM'],
    ['no URL', { data: { url: 7 } }, 'M_INVALID_PARAM'],
    ['a long key', { pushkey: 'é'.repeat(257) }, 'M_INVALID_PARAM'],
    ['an empty key', { pushkey: '' }, 'M_INVALID_PARAM'],
    ['a long app_id', { app_id: 'x'.repeat(65) }, 'M_INVALID_PARAM'],
    ['the app_id of mails', { app_id: 'm.email' }, 'M_INVALID_PARAM'],
    ['a long name', { device_display_name: 'x'.repeat(257) }, 'M_INVALID_PARAM'],
    ['a NUL', { pushkey: 'a\0b' }, 'M_INVALID_PARAM'],
    ['much data', { data: { url: GATEWAY, x: 'x'.repeat(9000) } }, 'M_INVALID_PARAM'],
    ['an address of somebody else', { kind: 'email', app_id: 'm.email', pushkey: 'a@b.org' }, 'M_THREEPID_NOT_FOUND'],
  ])('with %s is refused', async (_what, change, errcode) => {
    const { status, body } = await set(alice, { ...wish(), ...change })
    expect([status, body.errcode]).toEqual([400, errcode])
    expect(await list(alice)).toEqual([])
  })

  it('with a key and an app_id of the greatest lengths is set', async () => {
    const longest = { pushkey: 'é'.repeat(256), app_id: 'ä'.repeat(64) }
    expect((await set(alice, wish(longest))).status).toBe(200)
    expect(await list(alice)).toMatchObject([longest])
    await set(alice, { kind: null, ...longest })
  })

  it('takes its key from others, unless it is to be added', async () => {
    await set(bob, wish())
    await set(bob, wish({ app_id: 'org.other' }))
    await set(alice, wish({ append: true }))
    expect([await keys(alice), await keys(bob)]).toEqual([['a key'], ['a key', 'a key']])
    await set(alice, wish({ append: false }))
    expect(await list(bob)).toMatchObject([{ app_id: 'org.other' }])
    expect(await keys(alice)).toEqual(['a key'])
    await set(bob, { kind: null, app_id: 'org.other', pushkey: 'a key' })
    await set(alice, { kind: null, app_id: 'org.app', pushkey: 'a key' })
  })

  it('is one of a bounded number', async () => {
    const carol = await register(api, 'carol')
    for (let n = 0; n < MAX_PUSHERS_PER_USER; n++) await set(carol, wish({ pushkey: `key ${n}` }))
    const { status, body } = await set(carol, wish({ pushkey: 'one more' }))
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect((await set(carol, wish({ pushkey: 'key 0', lang: 'fr' }))).status).toBe(200)
    expect(await list(carol)).toHaveLength(MAX_PUSHERS_PER_USER)
  })
})

describe('a pusher ends with its session', () => {
  const user = async (name: string) => {
    const first = await register(api, name)
    const second = await login(api, name)
    await set(first, wish({ pushkey: 'first' }))
    await set(second, wish({ pushkey: 'second' }))
    expect(await keys(first)).toEqual(['first', 'second'])
    return { first, second }
  }

  it('at logout', async () => {
    const { first, second } = await user('logger')
    await api.call('POST', '/logout', { token: second.token, body: {} })
    expect(await keys(first)).toEqual(['first'])
  })

  it('when its device is deleted', async () => {
    const { first, second } = await user('deleter')
    const identifier = { type: 'm.id.user', user: 'deleter' }
    const auth = { type: 'm.login.password', identifier, password: PASSWORD }
    await api.call('DELETE', `/devices/${second.deviceId}`, { token: first.token, body: { auth } })
    expect(await keys(first)).toEqual(['first'])
  })

  it('at logout everywhere', async () => {
    const { first } = await user('everywhere')
    await api.call('POST', '/logout/all', { token: first.token, body: {} })
    expect(await list(await login(api, 'everywhere'))).toEqual([])
  })

  it('when another session changes the password, unless it keeps the others', async () => {
    const { first } = await user('changer')
    const identifier = { type: 'm.id.user', user: 'changer' }
    const change = async (password: string, to: string, logout_devices: boolean) => {
      const auth = { type: 'm.login.password', identifier, password }
      await api.call('POST', '/account/password', {
        token: first.token,
        body: { auth, new_password: to, logout_devices },
      })
    }
    await change(PASSWORD, 'another long password', false)
    expect(await keys(first)).toEqual(['first', 'second'])
    await change('another long password', 'a third long password', true)
    expect(await keys(first)).toEqual(['first'])
  })

  it('when the account is deactivated, however it was set', async () => {
    const { first } = await user('leaver')
    const userNid = (await server.services.sessions.find(first.token))!.userNid
    await server.services.pushers.set({ userNid, deviceId: '' }, wish({ pushkey: 'of a service' }))
    const identifier = { type: 'm.id.user', user: 'leaver' }
    const auth = { type: 'm.login.password', identifier, password: PASSWORD }
    await api.call('POST', '/account/deactivate', { token: first.token, body: { auth } })
    expect(await server.services.pushers.list(userNid)).toEqual([])
  })
})

describe('a pusher of mails', () => {
  it('is for an address of the account, and goes with it', async () => {
    const userNid = (await server.services.sessions.find(alice.token))!.userNid
    await server.db.tx((tx) =>
      tx.query("INSERT INTO user_threepid VALUES ('email', 'alice@example.org', $1, 0, 0)", [userNid]),
    )
    const mails = { kind: 'email', app_id: 'm.email', pushkey: 'Alice@Example.org', data: {} }
    const refused = await set(bob, wish(mails))
    expect(refused).toMatchObject({ status: 400, body: { errcode: 'M_THREEPID_NOT_FOUND' } })
    expect((await set(alice, wish(mails))).status).toBe(200)
    expect(await keys(alice)).toEqual(['alice@example.org'])
    const named = { medium: 'email', address: 'alice@example.org' }
    await api.call('POST', '/account/3pid/delete', { token: alice.token, body: named })
    expect(await list(alice)).toEqual([])
  })
})
