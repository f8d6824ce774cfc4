import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { type MigrationPlan, migrate, type PlannedMigration, planMigrations } from '../store/db/migrate.ts'
import type { Work } from '../store/db/migration-steps.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { borrowDatabase, isDatabaseAtHand, MIGRATIONS } from './database.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { createLog } from './serve/log.ts'

export const migrateCommand: Command = {
  usage: `[--plan] [--config FILE] [--set KEY=VALUE]...

Brings the database to the form that this release needs. The server does it by itself when it starts.

  --plan   says what would be done and about how long it takes, and does nothing: each statement with the rows that it goes through. Ends
           with 1 for a database that this release cannot use`,

  async run(host, words) {
    const options = { ...CONFIG_OPTIONS, plan: { type: 'boolean' } } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not understood`)
    const { config } = readConfig(host, values)
    if (values.plan === true) return plan(host, config)
    await ensureDataDirectory(config.data_dir, host.uid)
    const database = await borrow(host, config)
    try {
      const { applied } = await migrate(database.connection, MIGRATIONS)
      host.print(`Done: ${applied.join(', ') || 'nothing, the database is up to date'}`)
      return EXIT.ok
    } finally {
      await database.stop()
    }
  },
}

const borrow = (host: Host, config: Config) =>
  borrowDatabase(config, host.uid, createLog({ level: 'error', format: 'auto' }, host.isTerminal))

async function plan(host: Host, config: Config): Promise<number> {
  if (!(await isDatabaseAtHand(config))) {
    host.print(`There is no database yet: the first start makes one in ${config.data_dir}.`)
    return EXIT.ok
  }
  const database = await borrow(host, config)
  try {
    const found = await planMigrations(database.connection, MIGRATIONS)
    for (const line of linesOf(found, host.version)) host.print(line)
    return EXIT.ok
  } finally {
    await database.stop()
  }
}

function linesOf({ postgres, applied, newer, plans }: MigrationPlan, version: string): string[] {
  const last = [...applied, ...newer].sort().at(-1)
  const lines = [`The database: Postgres ${postgres}, ${last === undefined ? 'empty' : `migrated up to ${last}`}.`]
  if (newer.length > 0)
    lines.push(`A newer Hearth migrated it (${newer.join(', ')}); Hearth ${version} runs on it too.`)
  if (plans.length === 0) return [...lines, 'To do: nothing, the database is up to date']
  const seconds = plans.flatMap(({ steps }) => steps).reduce((sum, step) => sum + step.seconds, 0)
  lines.push(
    `To do: ${plans.length} migration${plans.length === 1 ? '' : 's'}, ${duration(seconds)}. The server does it when it starts.`,
  )
  for (const one of plans) lines.push(...linesOfOne(one))
  const breaking = plans.filter((one) => one.breaking !== undefined)
  lines.push(
    breaking.length === 0
      ? 'The release before runs on the result too, so that you can go back.'
      : 'The release before does not run on the result: make a backup first.',
  )
  return lines
}

const WORK: Readonly<Record<Exclude<Work, 'none'>, string>> = {
  index: 'an index over',
  check: 'a look at',
  rewrite: 'written anew:',
  rows: 'goes through at most',
}

function linesOfOne({ name, breaking, steps }: PlannedMigration): string[] {
  const quick = steps.filter(({ work }) => work === 'none').length
  const slow = steps.flatMap(({ text, work, tables, rows, seconds }) =>
    work === 'none'
      ? []
      : [
          `    ${text}`,
          `      ${WORK[work]} ${rows.toLocaleString('en')} rows of ${tables.join(', ')}: ${duration(seconds)}`,
        ],
  )
  const rest = quick === 0 ? [] : [`    ${quick} statement${quick === 1 ? '' : 's'} that take no time`]
  return [`  ${name}`, ...slow, ...rest, ...(breaking === undefined ? [] : [`    breaking: ${breaking}`])]
}

function duration(seconds: number): string {
  if (seconds < 1) return 'less than a second'
  if (seconds < 90) return `about ${Math.ceil(seconds)} s`
  return `about ${Math.ceil(seconds / 60)} min`
}
