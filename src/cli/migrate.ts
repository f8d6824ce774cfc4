import { parseArgs } from 'node:util'
import { migrate, planMigrations } from '../store/db/migrate.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { borrowDatabase, MIGRATIONS } from './database.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { createLog } from './serve/log.ts'

export const migrateCommand: Command = {
  usage: `[--plan] [--config FILE] [--set KEY=VALUE]...

  --plan   says what would be done, and does nothing`,

  async run(host, words) {
    const options = { ...CONFIG_OPTIONS, plan: { type: 'boolean' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not understood`)
    const { config } = readConfig(host, values)
    await ensureDataDirectory(config.data_dir, host.uid)
    const database = await borrowDatabase(
      config,
      host.uid,
      createLog({ level: 'error', format: 'auto' }, host.isTerminal),
    )
    try {
      const names = values.plan
        ? (await planMigrations(database.connection, MIGRATIONS)).pending
        : (await migrate(database.connection, MIGRATIONS)).applied
      host.print(`${values.plan ? 'To do' : 'Done'}: ${names.join(', ') || 'nothing, the database is up to date'}`)
      return EXIT.ok
    } finally {
      await database.stop()
    }
  },
}
