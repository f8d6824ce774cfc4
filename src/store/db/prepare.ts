import type pg from 'pg'
import { connected, type Migrated, migrateOver } from './migrate.ts'

// Table: server_name

/** Migrates the database to this release and checks that it belongs to this server name. */
export function prepareDatabase(
  connection: pg.ClientConfig,
  migrations: string,
  serverName: string,
): Promise<Migrated> {
  return connected(connection, async (client) => {
    const migrated = await migrateOver(client, migrations)
    await client.query('INSERT INTO server_name (name) VALUES ($1) ON CONFLICT DO NOTHING', [serverName])
    const { rows } = await client.query<{ name: string }>('SELECT name FROM server_name')
    const owner = rows[0]?.name
    if (owner !== serverName) {
      throw new Error(
        `this database belongs to "${owner}", but server_name is "${serverName}". The name is part of every user id: set it back, or start with an empty database (another data_dir or database.url).`,
      )
    }
    return migrated
  })
}
