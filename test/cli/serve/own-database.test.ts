import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startChildServer } from '../../support/child-server.ts'
import { createTestDatabase } from '../../support/database.ts'

test('with a database.url the server uses that Postgres and starts none', async () => {
  const database = await createTestDatabase()
  const server = await startChildServer({ env: { HEARTH__DATABASE__URL: database.url } })
  try {
    expect((await readdir(join(server.dataDir, 'data'))).sort()).toEqual(['identity.key', 'signing.key'])
    expect(await database.db.query('SELECT name FROM server_name')).toEqual([{ name: server.serverName }])
    expect(server.output()).toContain('fsync off')
  } finally {
    await server.dispose()
    await database.drop()
  }
})
