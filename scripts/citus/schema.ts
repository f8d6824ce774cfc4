import type { Reader } from '../../src/store/db/db.ts'
import { placeOf, SHARD_KEY } from './placement.ts'

/** A table of the catalog of Postgres. */
export interface Table {
  readonly name: string
  readonly columns: readonly string[]
  /** The columns of each primary key and unique index. */
  readonly unique: readonly (readonly string[])[]
  readonly foreign: readonly ForeignKey[]
  readonly triggers: readonly string[]
}

export interface ForeignKey {
  readonly columns: readonly string[]
  readonly to: string
  readonly toColumns: readonly string[]
}

const TABLES_QUERY = `SELECT c.relname::text AS name,
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
    (SELECT coalesce(json_agg(ARRAY(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts)), '[]')::text
     FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique) AS unique,
    (SELECT coalesce(json_agg(json_build_object('to', f.relname,
       'columns', ARRAY(SELECT a.attname::text FROM unnest(k.conkey) AS n JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = n),
       'toColumns', ARRAY(SELECT a.attname::text FROM unnest(k.confkey) AS n JOIN pg_attribute a ON a.attrelid = f.oid AND a.attnum = n))), '[]')::text
     FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid WHERE k.conrelid = c.oid AND k.contype = 'f') AS foreign,
    ARRAY(SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) AS triggers
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY c.relname`

/** All tables of a database. */
export async function readTables(reader: Reader): Promise<Table[]> {
  const rows = await reader.query<Omit<Table, 'unique' | 'foreign'> & { unique: string; foreign: string }>(TABLES_QUERY)
  return rows.map(({ unique, foreign, ...row }) => ({
    ...row,
    unique: JSON.parse(unique),
    foreign: JSON.parse(foreign),
  }))
}

/**
 * What keeps a table from its place, by the rules of Citus: a key must hold the column that distributes the table, a foreign key must stay within
 * a shard or lead to a table that is everywhere, and a distributed table has no triggers.
 */
export function problemsOf(table: Table): string[] {
  const place = placeOf(table.name)
  const problems: string[] = []
  if (place === 'room' || place === 'user') {
    const key = SHARD_KEY[place]
    if (!table.columns.includes(key)) return [`it has no ${key}`]
    for (const columns of table.unique) {
      if (!columns.includes(key)) problems.push(`the key (${columns.join(', ')}) lacks ${key}`)
    }
    for (const name of table.triggers) problems.push(`it has the trigger ${name}`)
  }
  for (const foreign of table.foreign) if (!isWithinShard(foreign, place)) problems.push(`it refers to ${foreign.to}`)
  return problems
}

function isWithinShard({ columns, to, toColumns }: ForeignKey, place: ReturnType<typeof placeOf>): boolean {
  const there = placeOf(to)
  if (place === 'one node') return there === 'one node' || there === 'everywhere'
  if (there === 'everywhere') return true
  if (place === 'everywhere' || place !== there) return false
  const key = SHARD_KEY[place]
  return columns.indexOf(key) >= 0 && columns.indexOf(key) === toColumns.indexOf(key)
}

/** Tables without a problem of their own, and none in a table that they refer to: those that refer to others come after them. */
export function distributable(tables: readonly Table[]): Table[] {
  const found: Table[] = []
  const byName = new Map(tables.map((table) => [table.name, table]))
  const verdicts = new Map<string, boolean>()
  const judge = (table: Table): boolean => {
    const known = verdicts.get(table.name)
    if (known !== undefined) return known
    verdicts.set(table.name, true)
    const others = table.foreign.map(({ to }) => byName.get(to)).filter((other) => other !== undefined)
    const isFit = problemsOf(table).length === 0 && others.every(judge)
    verdicts.set(table.name, isFit)
    if (isFit && placeOf(table.name) !== 'one node') found.push(table)
    return isFit
  }
  for (const table of tables) judge(table)
  return found
}

/** The statements that distribute tables. */
export function distribution(tables: readonly Table[]): string {
  const lines = distributable(tables).map(({ name }) => {
    const place = placeOf(name)
    return place === 'room' || place === 'user'
      ? `SELECT create_distributed_table('${name}', '${SHARD_KEY[place]}', colocate_with => '${leaderOf(place, name, tables)}');`
      : `SELECT create_reference_table('${name}');`
  })
  return lines.join('\n')
}

/** Tables of one kind lie together: the first one begins a group, which the others name. */
function leaderOf(place: 'room' | 'user', name: string, tables: readonly Table[]): string {
  const first = distributable(tables).find((table) => placeOf(table.name) === place)?.name
  return first === undefined || first === name ? 'none' : first
}
