import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Account, type Api, type Json, openApi, PASSWORD, register } from '../../support/api.ts'

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

const MATRIX = '/_matrix/client/v3'
const PROTO = '/_proto/client/r0'
const post = (path: string, body: Json = {}, token?: string) =>
  api.request('POST', path, { body, ...(token !== undefined && { token }) })
const proofOf = ({ userId }: Account, password = PASSWORD) => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: userId },
  password,
})
const outcome = ({ status, body }: { status: number; body: Json }) => [status, body.errcode]

test('B14: the deactivation of an account with nothing bound answers success, whatever identity server is named', async () => {
  for (const [n, id_server] of [undefined, 'untrusted.test', 'localhost'].entries()) {
    const account = await register(api, `unbound${n}`)
    const body = { auth: proofOf(account), ...(id_server !== undefined && { id_server }) }
    expect(await post(`${MATRIX}/account/deactivate`, body, account.token)).toEqual({
      status: 200,
      body: { id_server_unbind_result: 'success' },
    })
  }
})

test('B14: under /_matrix an account is deactivated without a token by its password', async () => {
  const account = await register(api, 'tokenless')
  const begun = await post(`${MATRIX}/account/deactivate`)
  expect(begun).toMatchObject({ status: 401, body: { flows: [{ stages: ['m.login.password'] }] } })
  const { session } = begun.body
  const wrong = await post(`${MATRIX}/account/deactivate`, { auth: { ...proofOf(account, 'not it'), session } })
  expect(outcome(wrong)).toEqual([401, 'M_FORBIDDEN'])
  const right = await post(`${MATRIX}/account/deactivate`, { auth: { ...proofOf(account), session } })
  expect(right).toEqual({ status: 200, body: { id_server_unbind_result: 'success' } })
  expect(outcome(await api.request('GET', '/account/whoami', { token: account.token }))).toEqual([
    401,
    'M_UNKNOWN_TOKEN',
  ])
})

test('B14: under /_matrix a locked account is not deactivated by its password', async () => {
  const account = await register(api, 'locked')
  await server.db.tx((tx) =>
    tx.query(
      'UPDATE account SET is_locked = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [account.userId],
    ),
  )
  const { status } = await post(`${MATRIX}/account/deactivate`, { auth: proofOf(account) })
  expect(status).toBe(401)
  const [row] = await server.db.query<{ at: number | null }>(
    'SELECT deactivated_at AS at FROM account JOIN matrix_user USING (user_nid) WHERE user_id = $1',
    [account.userId],
  )
  expect(row?.at).toBeNull()
})

test('B14: under /_proto a deactivation without a token is M_MISSING_TOKEN', async () => {
  const account = await register(api, 'kept')
  expect(outcome(await post(`${PROTO}/account/deactivate`))).toEqual([401, 'M_MISSING_TOKEN'])
  const withProof = await post(`${PROTO}/account/deactivate`, { auth: proofOf(account) })
  expect(outcome(withProof)).toEqual([401, 'M_MISSING_TOKEN'])
})

test.each([
  ['nothing', {}],
  ['a password alone', { new_password: 'long enough for here' }],
  ['a weak one', { new_password: 'x' }],
  ['a proof by password', { new_password: 'long enough for here', auth: { type: 'm.login.password' } }],
  ['a dummy proof', { new_password: 'long enough for here', auth: { type: 'm.login.dummy' } }],
])('B14: under /_proto account/password without a token is M_MISSING_TOKEN, with %s', async (_, body) => {
  expect(outcome(await post(`${PROTO}/account/password`, body))).toEqual([401, 'M_MISSING_TOKEN'])
})

test('B14: under /_proto a password is reset without a token by who shows an address, as under /_matrix', async () => {
  const threepid_creds = { sid: 'unknown', client_secret: 'secret' }
  const auth = { type: 'm.login.email.identity', threepid_creds }
  for (const root of [PROTO, MATRIX]) {
    const { status, body } = await post(`${root}/account/password`, { new_password: 'long enough for here', auth })
    expect([status, body.flows]).toEqual([401, expect.arrayContaining([{ stages: ['m.login.email.identity'] }])])
    const polled = { new_password: 'long enough for here', auth: { session: body.session } }
    expect((await post(`${root}/account/password`, polled)).body.flows).toBeDefined()
  }
})

test('B14: a new password that is missing is said so to who is logged in', async () => {
  const account = await register(api, 'bare')
  expect(outcome(await post(`${PROTO}/account/password`, {}, account.token))).toEqual([400, 'M_MISSING_PARAM'])
})
