import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pino } from 'pino'
import { openDatabase } from '../../src/store/db/db.ts'
import { migrate } from '../../src/store/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { placeOf } from './placement.ts'
import { distributable, distribution, problemsOf, readTables, type Table } from './schema.ts'
import { REACHES, type Reach, reachOf, type Statement, statementsIn } from './statements.ts'

const FILE = 'migrations/citus/distribute.sql'
const HEAD = `-- Made by \`npm run citus -- --write\`. NOT FOR USE: no release runs on it. It distributes the tables of a Hearth over a Citus cluster that obey
-- its rules today; docs/scaling.md says which do not, and what has to change before. It was never run on a Citus.
`

/** The schema as the migrations make it. */
async function tablesOfMigrations(): Promise<Table[]> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-citus-'))
  const postgres = await startEmbeddedPostgres({
    directory: join(directory, 'postgres'),
    uid: process.getuid?.() ?? 0,
    log: pino({ level: 'error' }),
    settings: { fsync: 'off' },
  })
  try {
    await migrate(postgres.connection, join(PROJECT_ROOT, 'migrations'))
    const db = openDatabase({ connection: postgres.connection, poolSize: 1 })
    const tables = await readTables(db)
    await db.close()
    return tables
  } finally {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function readStatements(): Promise<Statement[]> {
  const root = join(PROJECT_ROOT, 'src')
  const names = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.ts')).sort()
  const found: Statement[] = []
  for (const name of names) {
    const path = join(root, name)
    found.push(...statementsIn(relative(PROJECT_ROOT, path), await readFile(path, 'utf8')))
  }
  return found
}

async function main(words: readonly string[]): Promise<void> {
  const tables = await tablesOfMigrations()
  const known = new Set(tables.map(({ name }) => name))
  for (const table of tables) for (const problem of problemsOf(table)) console.log(`${table.name}: ${problem}`)
  const placed = tables.filter(({ name }) => placeOf(name) !== 'one node')
  console.log(
    `\n${distributable(tables).length} of the ${placed.length} tables that would be distributed obey the rules;`,
  )
  console.log(`${tables.length - placed.length} would stay on one node\n`)
  const byReach = new Map<Reach, Statement[]>(REACHES.map((reach) => [reach, []]))
  for (const statement of await readStatements()) byReach.get(reachOf(statement, known))!.push(statement)
  for (const [reach, all] of byReach) console.log(`${`${all.length}`.padStart(5)} statements: ${reach}`)
  const shown = words.find((word): word is Reach => REACHES.includes(word as Reach))
  for (const { file, line, text } of byReach.get(shown ?? 'no shard') ?? []) {
    if (shown !== undefined) console.log(`\n${file}:${line}\n${text}`)
  }
  if (words.includes('--write')) await writeFile(join(PROJECT_ROOT, FILE), `${HEAD}\n${distribution(tables)}\n`)
}

await main(process.argv.slice(2))
