import { expect, it, onTestFinished } from 'vitest'
import { startServer } from '../../support/server.ts'
import { waitUntil } from '../../support/wait.ts'

it('opens a connection for the timelines of first syncs at the start, and plans on it', async () => {
  const server = await startServer({}, { plansAhead: true })
  onTestFinished(() => server.close())
  // Its token is looked up on the connection of small reads, after all that is planned there.
  const headers = { authorization: 'Bearer of-nobody' }
  expect((await fetch(`${server.baseUrl}/_matrix/client/v3/account/whoami`, { headers })).status).toBe(401)
  const planned = await waitUntil('the statements to be planned', async () => {
    // The newest statement of each connection: timelines and types of rooms are planned before it.
    const rows = await server.database.db.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT room_nid, json_agg(%' AND state = 'idle'`,
    )
    return rows.length > 0 ? rows : undefined
  })
  expect(planned).toHaveLength(1)
  expect(await server.metrics()).toMatch(/^hearth_database_read_seconds_count\{connection="bulk"\} 4$/m)
})
