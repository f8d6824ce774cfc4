import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ContactPeople, startContactPeople } from '../contact/contact-people.ts'
import type { Json } from '../support/api.ts'

const PASSWORD = 'canary-password-one'
const NEW_PASSWORD = 'canary-password-two'
const WRONG = 'canary-password-wrong'
const REGISTRATION_TOKEN = 'canary-registration-token'

let people: ContactPeople
const secrets = new Set([PASSWORD, NEW_PASSWORD, WRONG, REGISTRATION_TOKEN])

beforeAll(async () => {
  people = await startContactPeople({ registration: { enabled: false, token: REGISTRATION_TOKEN, email: 'optional' } })
})

afterAll(() => people.close())

/** Every text that the database holds, as a dump has it. */
async function dump(): Promise<string> {
  const { db } = people.server
  const tables = await db.query<{ name: string }>(
    `SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = 'public'`,
  )
  const parts = await Promise.all(
    tables.map(({ name }) => db.query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`)),
  )
  return parts
    .flat()
    .map(({ row }) => row)
    .join('\n')
}

/** Notes what an answer gave that nobody else may see. */
function keep(body: Json): Json {
  for (const key of ['access_token', 'refresh_token', 'session', 'login_token']) {
    if (typeof body?.[key] === 'string') secrets.add(body[key])
  }
  return body
}

const ask = async (method: 'GET' | 'POST' | 'DELETE', path: string, body: Json, token?: string): Promise<Json> =>
  keep((await people.api.request(method, path, { body, ...(token && { token }) })).body)

it('passwords and tokens are in no log and, in clear, in no database', async () => {
  const email = 'canary-address@example.org'
  const wish = { username: 'canary', password: PASSWORD, refresh_token: true }
  const { session } = await ask('POST', '/register', wish)
  const token = { type: 'm.login.registration_token', token: REGISTRATION_TOKEN, session }
  const account = await ask('POST', '/register', { ...wish, auth: token })
  expect(account.user_id).toBe('@canary:localhost')
  const identifier = { type: 'm.id.user', user: 'canary' }
  const login = { type: 'm.login.password', identifier, password: PASSWORD }
  await ask('POST', '/login', { ...login, password: WRONG })
  await ask('POST', `/login?access_token=${account.access_token}`, { ...login, refresh_token: true })
  const renewed = await ask('POST', '/refresh', { refresh_token: account.refresh_token })
  const half = await ask('POST', '/account/password', { new_password: NEW_PASSWORD }, renewed.access_token)
  await ask(
    'POST',
    '/account/password',
    { new_password: NEW_PASSWORD, auth: { ...login, password: WRONG, session: half.session } },
    renewed.access_token,
  )
  const userId = '@canary:localhost'
  const proof = await people.validated('account/3pid', email)
  secrets.add(proof.client_secret)
  await ask('POST', '/account/3pid/add', { ...proof, auth: login }, renewed.access_token)
  await ask('POST', `/login/get_token`, { auth: login }, renewed.access_token)
  await ask('POST', `/user/${userId}/openid/request_token`, {}, renewed.access_token)
  await ask('POST', '/account/password', { new_password: NEW_PASSWORD, auth: login }, renewed.access_token)
  await ask('POST', '/login', { ...login, password: NEW_PASSWORD })
  // What breaks is logged with its cause: that too without what was sent.
  await people.api.request('POST', `/login?access_token=${account.access_token}`, { body: { ...login, device_id: 7 } })

  expect(secrets.size).toBeGreaterThan(12)
  const [log, rows] = [people.server.logged(), await dump()]
  expect(log.length).toBeGreaterThan(1_000)
  expect(rows).toContain('@canary:localhost')
  for (const secret of secrets) {
    expect(log, 'the log').not.toContain(secret)
    if (secret === proof.client_secret) continue
    const forms = [secret, Buffer.from(secret).toString('hex'), Buffer.from(secret).toString('base64')]
    for (const form of forms) expect(rows, 'the database').not.toContain(form)
  }
  expect(log).not.toContain(email)
  // Nor a plain hash of a password, by which it could be guessed.
  for (const password of [PASSWORD, NEW_PASSWORD]) {
    for (const algorithm of ['sha256', 'sha1', 'md5', 'sha512']) {
      expect(rows).not.toContain(createHash(algorithm).update(password).digest('hex'))
    }
  }
})
