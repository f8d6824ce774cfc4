import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { forgetRefreshTokens } from '../../../src/store/accounts/tokens.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Api, type Json, mapConcurrently, openApi, PASSWORD, register } from '../../support/api.ts'

let server: AccountServer
let api: Api

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
  await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const MINUTES = 60_000
const login = async (body: Json = {}): Promise<Json> => {
  const identifier = { type: 'm.id.user', user: 'alice' }
  const wish = { type: 'm.login.password', identifier, password: PASSWORD, refresh_token: true, ...body }
  return api.call('POST', '/login', { body: wish })
}
const refresh = (refresh_token: unknown) => api.request('POST', '/refresh', { body: { refresh_token } })
const whoami = (token: string) => api.request('GET', '/account/whoami', { token })

const SOFT = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN', soft_logout: true } }
const HARD = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } }

describe('a client that can refresh', () => {
  it('gets a short access token and a refresh token, at login and at registration', async () => {
    const answers = [
      await login(),
      await api.call('POST', '/register', {
        body: { username: 'rita', password: PASSWORD, refresh_token: true, auth: { type: 'm.login.dummy' } },
      }),
    ]
    for (const answer of answers) {
      expect(answer).toMatchObject({
        expires_in_ms: 5 * MINUTES,
        refresh_token: expect.stringMatching(/^hearth_refresh_[\w-]{43}_[0-9a-f]{8}$/),
      })
    }
  })

  it('is told of a soft logout when the token has expired, and renews it', async () => {
    const first = await login()
    expect((await whoami(first.access_token)).status).toBe(200)
    server.advance(5 * MINUTES + 1)
    expect(await whoami(first.access_token)).toMatchObject(SOFT)
    const { status, body } = await refresh(first.refresh_token)
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.stringMatching(/^hearth_/),
      refresh_token: expect.stringMatching(/^hearth_refresh_/),
      expires_in_ms: 5 * MINUTES,
    })
    expect((await whoami(body.access_token)).body.device_id).toBe(first.device_id)
    expect(await whoami(first.access_token)).toMatchObject(HARD)
  })

  it('logs in again with its device id after a soft logout', async () => {
    const first = await login()
    server.advance(5 * MINUTES + 1)
    const second = await login({ device_id: first.device_id })
    expect((await whoami(second.access_token)).body.device_id).toBe(first.device_id)
    expect(await refresh(first.refresh_token)).toMatchObject(HARD)
    expect((await refresh(second.refresh_token)).status).toBe(200)
  })

  it('keeps its transaction ids across a renewal', async () => {
    const first = await login()
    const before = await server.services.sessions.find(first.access_token)
    const { body } = await refresh(first.refresh_token)
    const after = await server.services.sessions.find(body.access_token)
    expect(after?.tokenNid).toBe(before?.tokenNid)
  })
})

describe('a refresh token', () => {
  it('stays good while its answer may be lost, until the new access token is used', async () => {
    const first = await login()
    const lost = (await refresh(first.refresh_token)).body
    const second = (await refresh(first.refresh_token)).body
    expect(await whoami(lost.access_token)).toMatchObject(HARD)
    expect(await refresh(lost.refresh_token)).toMatchObject(HARD)
    expect((await whoami(second.access_token)).status).toBe(200)
    expect(await refresh(first.refresh_token)).toMatchObject(SOFT)
  })

  it('ends when its successor is used', async () => {
    const first = await login()
    const second = (await refresh(first.refresh_token)).body
    const third = (await refresh(second.refresh_token)).body
    expect((await whoami(third.access_token)).status).toBe(200)
    expect(await refresh(first.refresh_token)).toMatchObject(SOFT)
  })

  it('that is used after its end ends the login, for the thief as for the robbed, and leaves the device', async () => {
    const first = await login()
    const second = (await refresh(first.refresh_token)).body
    expect((await whoami(second.access_token)).status).toBe(200)
    expect(await refresh(first.refresh_token)).toMatchObject(SOFT)
    expect(await whoami(second.access_token)).toMatchObject(HARD)
    expect(await refresh(second.refresh_token)).toMatchObject(HARD)
    const again = await login({ device_id: first.device_id })
    const { devices } = await api.call('GET', '/devices', { token: again.access_token })
    expect(devices.map((device: Json) => device.device_id)).toContain(first.device_id)
  })

  it('gives one living pair, however many use it at once', async () => {
    const first = await login()
    const answers = await mapConcurrently(Array.from({ length: 12 }), 12, () => refresh(first.refresh_token))
    for (const { status } of answers) expect(status).toBe(200)
    const live = await mapConcurrently(answers, 1, async ({ body }) => (await whoami(body.access_token)).status)
    expect(live.filter((status) => status === 200)).toHaveLength(1)
  })

  it.each(['logout', 'deactivation', 'removal of the device'])('ends with a %s', async (how) => {
    const first = await login()
    if (how === 'logout') await api.call('POST', '/logout', { token: first.access_token, body: {} })
    if (how === 'removal of the device') {
      const nid = (await server.services.sessions.find(first.access_token))?.userNid as number
      await server.services.devices.remove(nid, [first.device_id])
    }
    const set = (to: string) =>
      server.db.query(
        `UPDATE account SET deactivated_at = ${to}
         WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = '@alice:localhost')`,
      )
    if (how === 'deactivation') await set('1')
    const answer = await refresh(first.refresh_token)
    await set('NULL')
    expect([answer.status, answer.body.errcode]).toEqual(
      how === 'deactivation' ? [403, 'M_USER_DEACTIVATED'] : [401, 'M_UNKNOWN_TOKEN'],
    )
  })

  it('is no access token, and an access token is no refresh token', async () => {
    const first = await login()
    expect(await whoami(first.refresh_token)).toMatchObject(HARD)
    for (const wrong of [first.access_token, '', 'x', '\0', 'hearth_refresh_x']) {
      expect(await refresh(wrong)).toMatchObject(HARD)
    }
    expect(await refresh(7)).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
  })

  it('is kept as a hash, and tidied away a week after its end', async () => {
    const first = await login()
    const second = (await refresh(first.refresh_token)).body
    await whoami(second.access_token)
    const rows = await server.db.query<{ row: string }>('SELECT t::text AS row FROM refresh_token t')
    const text = rows.map(({ row }) => row).join('\n')
    expect(text).not.toContain(first.refresh_token)
    expect(text).not.toContain(Buffer.from(first.refresh_token).toString('hex'))
    const ended = async () => (await server.db.query('SELECT 1 FROM refresh_token WHERE ended_at IS NOT NULL')).length
    expect(await ended()).toBeGreaterThan(0)
    await server.db.tx((tx) => forgetRefreshTokens(tx, Number.MAX_SAFE_INTEGER, 10_000))
    expect(await ended()).toBe(0)
    expect((await refresh(second.refresh_token)).status).toBe(200)
  })
})

describe('a client that cannot refresh', () => {
  it('gets a token that does not end', async () => {
    const answer = await login({ refresh_token: false })
    expect(answer).not.toHaveProperty('refresh_token')
    expect(answer).not.toHaveProperty('expires_in_ms')
    server.advance(1000 * 24 * 60 * MINUTES)
    expect((await whoami(answer.access_token)).status).toBe(200)
  })

  it('is logged out softly where the operator wants tokens to end', async () => {
    const other = await startAccountServer({ sessions: { token_lifetime_hours: 1 } })
    const at = openApi(other.baseUrl)
    const { token } = await register(at, 'bob')
    expect((await at.request('GET', '/account/whoami', { token })).status).toBe(200)
    other.advance(60 * MINUTES + 1)
    expect(await at.request('GET', '/account/whoami', { token })).toMatchObject(SOFT)
    await at.close()
    await other.close()
  })
})
