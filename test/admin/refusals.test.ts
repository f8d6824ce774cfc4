import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { consoleDataEndpoints } from '../../src/routes/console/index.ts'
import type { Account } from '../support/api.ts'
import { type Office, openOffice } from './office.ts'

let office: Office
let user: Account
let guest: string
let former: Account
beforeAll(async () => {
  office = await openOffice()
  user = await office.person('user')
  former = await office.person('former')
  guest = (await office.api.call('POST', '/register?kind=guest', { body: {} })).access_token
  await office.call('PUT', `/v1/users/${former.userId}/admin`, { admin: true })
  expect((await office.ask('GET', '/v2/users', undefined, former.token)).status).toBe(200)
  await office.server.database.db.tx((tx) =>
    tx.query(
      'UPDATE account SET deactivated_at = 1 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [former.userId],
    ),
  )
})
afterAll(() => office.close())

const VALUES: Readonly<Record<string, string>> = {
  userId: '@user:localhost',
  roomId: '!room:localhost',
  eventId: '$event',
}
const urlOf = (path: string) =>
  path
    .replace(/^C1/, '/_matrix/client/v1')
    .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(VALUES[name] ?? 'x'))

const closed = [...adminEndpoints, ...consoleDataEndpoints].filter(({ options }) => options.auth === 'admin')
const line = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

describe.each(closed.map((endpoint) => [line(endpoint), endpoint] as const))('%s', (_, { method, path }) => {
  const ask = (token?: string) =>
    office.api.request(method, urlOf(path), {
      ...(token === undefined ? {} : { token }),
      ...(method === 'GET' || method === 'DELETE' ? {} : { body: {} }),
    })

  test('is closed to everybody but administrators', async () => {
    for (const [token, status, errcode] of [
      [undefined, 401, 'M_MISSING_TOKEN'],
      ['hearth_nonsense', 401, 'M_UNKNOWN_TOKEN'],
      ['hearthop_nonsense', 401, 'M_UNKNOWN_TOKEN'],
      [user.token, 403, 'M_FORBIDDEN'],
      [guest, 403, 'M_FORBIDDEN'],
      [former.token, 403, 'M_FORBIDDEN'],
    ] as const) {
      expect(await ask(token)).toMatchObject({ status, body: { errcode } })
    }
  })
})

test('what is open to others than administrators is known by name', () => {
  expect(adminEndpoints.filter(({ options }) => options.auth !== 'admin').map(line)).toEqual([
    'GET /_synapse/admin/v1/server_version',
    'GET /_synapse/admin/v1/register',
    'POST /_synapse/admin/v1/register',
  ])
})

test('no refused call is on the record', async () => {
  const { acts } = await office.call('GET', '/_hearth/admin/v1/acts?limit=1000')
  expect(acts.map(({ actor }: { actor: string }) => actor)).not.toContain(user.userId)
})
