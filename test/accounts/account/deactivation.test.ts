import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eraseAccount } from '../../../src/store/accounts/deactivations.ts'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  login,
  openApi,
  PASSWORD,
  register,
} from '../../support/api.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { waitUntil } from '../../support/wait.ts'

let server: TestServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const auth = ({ userId }: Account) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: userId },
  password: PASSWORD,
})
const deactivate = (account: Account, body: Json = {}) =>
  api.request('POST', '/account/deactivate', { token: account.token, body: { auth: auth(account), ...body } })
const memberIn = async (roomId: string, userId: string): Promise<string | undefined> => {
  const { chunk } = await api.call('GET', `/rooms/${roomId}/members`, { token: alice.token })
  return chunk.find(({ state_key }: Json) => state_key === userId)?.content.membership
}
const query = (text: string, values: unknown[] = []) => server.database.db.query<Json>(text, values as never)

describe('POST account/deactivate', () => {
  it('wants proof, with flows', async () => {
    const account = await register(api, 'careful')
    expect(await deactivate(account, { auth: undefined })).toMatchObject({
      status: 401,
      body: { flows: [{ stages: ['m.login.password'] }], session: expect.any(String) },
    })
    expect((await api.request('GET', '/account/whoami', { token: account.token })).status).toBe(200)
  })

  it('says `success` where nothing was bound', async () => {
    const account = await register(api, 'unbound')
    expect((await deactivate(account)).body).toEqual({ id_server_unbind_result: 'success' })
  })

  it('ends every way in: passwords, all kinds of tokens, the name', async () => {
    const account = await register(api, 'gone')
    const other = await login(api, account.userId)
    const refreshing = await api.call('POST', '/login', { body: { ...auth(account), refresh_token: true } })
    const openId = await api.call('POST', `/user/${account.userId}/openid/request_token`, {
      token: account.token,
      body: {},
    })
    const identity = await api.call('POST', '/_matrix/identity/v2/account/register', { body: openId })
    const asIdentity = () => api.request('GET', '/_matrix/identity/v2/account', { token: identity.token })
    expect((await asIdentity()).status).toBe(200)
    const loginToken = await server.services.loginTokens.issue(
      Number((await query(`SELECT user_nid FROM matrix_user WHERE user_id = '@gone:localhost'`))[0]?.user_nid),
    )
    expect((await deactivate(account)).status).toBe(200)

    for (const token of [account.token, other.token, refreshing.access_token]) {
      const answer = await api.request('GET', '/account/whoami', { token })
      expect(answer).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    }
    const ways: [name: string, answer: Promise<Json>, statuses: [number, string][]][] = [
      ['the password', api.request('POST', '/login', { body: auth(account) }), [[403, 'M_USER_DEACTIVATED']]],
      [
        'another password',
        api.request('POST', '/login', { body: { ...auth(account), password: 'x' } }),
        [[403, 'M_USER_DEACTIVATED']],
      ],
      [
        'no password',
        api.request('POST', '/login', { body: { ...auth(account), password: '' } }),
        [[403, 'M_USER_DEACTIVATED']],
      ],
      [
        'its refresh token',
        api.request('POST', '/refresh', { body: { refresh_token: refreshing.refresh_token } }),
        [[401, 'M_UNKNOWN_TOKEN']],
      ],
      [
        'a login token',
        api.request('POST', '/login', { body: { type: 'm.login.token', token: loginToken.token } }),
        [
          [403, 'M_FORBIDDEN'],
          [403, 'M_USER_DEACTIVATED'],
        ],
      ],
      ['its identity token', asIdentity(), [[401, 'M_UNAUTHORIZED']]],
      [
        'its OpenID token',
        api.request('GET', `/_matrix/federation/v1/openid/userinfo?access_token=${openId.access_token}`),
        [[401, 'M_UNKNOWN_TOKEN']],
      ],
      [
        'its name',
        api.request('POST', '/register', {
          body: { username: 'gone', password: PASSWORD, auth: { type: 'm.login.dummy' } },
        }),
        [[400, 'M_USER_IN_USE']],
      ],
    ]
    for (const [name, answer, allowed] of ways) {
      const { status, body } = await answer
      expect(allowed, name).toContainEqual([status, body.errcode])
    }
    expect(
      await query(
        `SELECT count(*) AS count FROM device JOIN matrix_user USING (user_nid) WHERE user_id = '@gone:localhost'`,
      ),
    ).toEqual([{ count: 0 }])
    const [row] = await query(
      `SELECT password_hash FROM account JOIN matrix_user USING (user_nid) WHERE user_id = '@gone:localhost'`,
    )
    expect(row).toEqual({ password_hash: null })
  })

  it('leaves rooms and rejects invitations, a little later', async () => {
    const account = await register(api, 'roomer')
    const joined = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, account.token, joined)
    const invited = await createRoom(api, alice.token, { invite: [account.userId] })
    await deactivate(account)
    for (const roomId of [joined, invited]) {
      await waitUntil('the user to leave', async () => (await memberIn(roomId, account.userId)) === 'leave')
    }
    await waitUntil('the work to end', async () => (await query('SELECT user_nid FROM deactivation')).length === 0)
  })

  it('goes on after a restart in the middle', async () => {
    const account = await register(api, 'interrupted')
    const rooms: string[] = []
    for (let i = 0; i < 3; i++) {
      const roomId = await createRoom(api, alice.token, { preset: 'public_chat' })
      await join(api, account.token, roomId)
      rooms.push(roomId)
    }
    // As a process leaves it that is killed right after the answer.
    await server.database.db.tx(async (tx) => {
      const [row] = await tx.query<{ user_nid: number }>(
        `UPDATE account a SET deactivated_at = 1, password_hash = NULL FROM matrix_user u
         WHERE u.user_nid = a.user_nid AND u.user_id = $1 RETURNING a.user_nid`,
        [account.userId],
      )
      await tx.query('INSERT INTO deactivation (user_nid, requested_at, due_at) VALUES ($1, 1, 1)', [
        row?.user_nid ?? 0,
      ])
    })
    await server.restart()
    for (const roomId of rooms) {
      await waitUntil('the user to leave', async () => (await memberIn(roomId, account.userId)) === 'leave')
    }
    expect((await api.request('GET', '/account/whoami', { token: account.token })).status).toBe(401)
    await waitUntil('the work to end', async () => (await query('SELECT user_nid FROM deactivation')).length === 0)
  })

  it('erases what is no event, where that is wanted', async () => {
    const [kept, erased] = [await register(api, 'kept'), await register(api, 'erased')]
    for (const account of [kept, erased]) {
      const { token, userId } = account
      await api.call('PUT', `/profile/${userId}/displayname`, { token, body: { displayname: 'Canary Name' } })
      await api.call('PUT', `/user/${userId}/account_data/org.test`, { token, body: { canary: 1 } })
    }
    await deactivate(kept)
    await deactivate(erased, { erase: true })
    expect(await api.call('GET', `/profile/${kept.userId}`)).toEqual({ displayname: 'Canary Name' })
    expect(await api.call('GET', `/profile/${erased.userId}`)).toEqual({})
    const data = await query(
      `SELECT user_id FROM account_data JOIN matrix_user USING (user_nid) WHERE type = 'org.test'`,
    )
    expect(data).toEqual([{ user_id: kept.userId }])
  })

  it('erases while the directory is written', async () => {
    const { userId } = await register(api, 'written')
    const { db } = server.database
    const [row] = await db.query<{ nid: number }>('SELECT user_nid AS nid FROM matrix_user WHERE user_id = $1', [
      userId,
    ])
    const { nid } = row!
    const waiting = async () => {
      // Other databases of this Postgres have locks of their own.
      const [count] = await db.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      return count!.n > 0
    }
    let erasing: Promise<void> | undefined
    await db.tx(async (tx) => {
      await tx.query(`UPDATE directory_user SET display_name = 'new' WHERE user_nid = $1`, [nid])
      erasing = db.tx((other) => eraseAccount(other, nid, 1, 1))
      await waitUntil('the erasure to wait', waiting)
      await tx.query('DELETE FROM directory_word WHERE user_nid = $1', [nid])
    })
    await erasing
    expect(await db.query('SELECT FROM directory_user WHERE user_nid = $1', [nid])).toEqual([])
  })

  it('is the same when many ask at once', async () => {
    const account = await register(api, 'impatient')
    const answers = await Promise.all(Array.from({ length: 5 }, () => deactivate(account)))
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
    for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
      expect([401, 403]).toContain(status)
      expect(['M_UNKNOWN_TOKEN', 'M_USER_DEACTIVATED', 'M_FORBIDDEN']).toContain(body.errcode)
    }
  })

  it('is not for guests', async () => {
    const guest = (await api.request('POST', '/register?kind=guest', { body: {} })).body
    const answer = await api.request('POST', '/account/deactivate', { token: guest.access_token, body: {} })
    expect(answer).toMatchObject({ status: 403, body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' } })
  })
})
