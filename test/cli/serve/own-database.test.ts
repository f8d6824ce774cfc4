import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { ownConnections } from '../../../src/cli/database.ts'
import { SUPERUSER } from '../../../src/store/embedded/cluster.ts'
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

test('its own Postgres takes as many connections as the nodes and their pools can use', async () => {
  const connections = (nodes: number, pool_size: number) =>
    ownConnections({ cluster: { nodes }, database: { pool_size } } as Parameters<typeof ownConnections>[0])
  expect([connections(1, 6), connections(2, 6), connections(1, 200)]).toEqual([50, 75, 244])
  // Both of two that hand over have all of theirs, and the rest a few.
  expect(connections(10, 200)).toBeGreaterThan(2 * 200 + 10 * 10)
  const server = await startChildServer({ env: { HEARTH__DATABASE__POOL_SIZE: '60' } })
  const client = new pg.Client({ ...server.postgresSocket(), user: SUPERUSER, database: 'postgres' })
  try {
    await client.connect()
    expect((await client.query('SHOW max_connections')).rows).toEqual([{ max_connections: `${connections(1, 60)}` }])
  } finally {
    await client.end()
    await server.dispose()
  }
})
