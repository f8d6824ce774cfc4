import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openDatabase } from '../../../src/store/db/db.ts'
import { isWriterPresent, WRITER } from '../../../src/store/db/writer-lock.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { openIdentity } from '../identity-api.ts'

const openDatabaseOf = (server: ChildServer) =>
  openDatabase({ connection: { ...server.postgresSocket(), user: 'hearth', database: 'hearth' }, poolSize: 1 })

it('`hearth serve --roles identity` is an identity service with a database and a key of its own', async () => {
  const server = await startChildServer({ args: ['--roles', 'identity'], serverName: 'identity.test' })
  const { ask } = openIdentity(server.baseUrl)
  expect(await ask('GET', '/_matrix/identity/v2')).toMatchObject({ status: 200, body: {} })
  const { body } = await ask('GET', '/pubkey/ed25519:0')
  const key = encodeURIComponent(body.public_key)
  expect((await ask('GET', `/pubkey/isvalid?public_key=${key}`)).body).toEqual({ valid: true })
  expect(await ask('GET', '/_matrix/client/versions')).toMatchObject({ status: 404 })
  expect(await ask('GET', '/_matrix/federation/v1/openid/userinfo?access_token=x')).toMatchObject({
    status: 404,
    body: { errcode: 'M_UNRECOGNIZED' },
  })
  expect(existsSync(join(server.dataDir, 'data', 'identity.key'))).toBe(true)
  // Nobody else may use its database, as beside a homeserver.
  const other = openDatabaseOf(server)
  expect(await isWriterPresent(other, WRITER)).toBe(true)
  await other.close()
  expect(server.output()).toMatch(/Identity +http:\/\/127/)
  expect(server.output()).not.toContain('First user')
  await server.dispose()
})
