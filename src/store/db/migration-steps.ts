/** What a statement of a migration does to a table that is there already. */
export type Work =
  /** Nothing that takes longer with more rows. */
  | 'none'
  /** Reads all rows, and lets nobody write meanwhile. */
  | 'index'
  | 'check'
  /** Writes all rows anew, and lets nobody read meanwhile. */
  | 'rewrite'
  /** Changes or reads rows one by one: of all its tables, at most. */
  | 'rows'

export interface MigrationStep {
  /** Its beginning, in one line. */
  readonly text: string
  readonly work: Work
  /** The tables whose rows it may go through. */
  readonly tables: readonly string[]
}

const TEXT_CHARS = 90
const CREATED = /^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/i
const INDEX = /^CREATE (?:UNIQUE )?INDEX (?:\w+ )?ON (\w+)/i
const ALTER = /^ALTER TABLE (?:ONLY )?(\w+) (.*)$/i
const TYPE = /ALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE /i
/** A new column whose value differs from row to row. */
const EACH_OWN = /ADD COLUMN [^,]*(?:GENERATED |DEFAULT (?:random|gen_random_uuid|nextval|clock_timestamp)\()/i
const CHECKED = /ADD (?:CONSTRAINT|PRIMARY|UNIQUE|FOREIGN|CHECK|EXCLUDE)|SET NOT NULL/i
const GOES_THROUGH_ROWS = /^(?:UPDATE|DELETE|INSERT|WITH|MERGE)\b/i
const TABLE_NAMED = /\b(?:FROM|JOIN|UPDATE|USING|INTO) (?:ONLY )?(\w+)/gi

/** What a migration does, statement by statement. Tables that it makes itself are empty, and are not named. */
export function stepsOf(
  sql: string,
  made: ReadonlySet<string> = new Set(),
): { steps: MigrationStep[]; made: Set<string> } {
  const empty = new Set(made)
  const steps = statementsOf(sql).map((statement) => {
    const line = statement.replace(/\s+/g, ' ').trim()
    const created = CREATED.exec(line)?.[1]
    if (created !== undefined) empty.add(created)
    const { work, tables } = workOf(line)
    const filled = tables.filter((table) => !empty.has(table))
    const text = line.length > TEXT_CHARS ? `${line.slice(0, TEXT_CHARS - 3)}...` : line
    return { text, work: filled.length === 0 ? ('none' as const) : work, tables: filled }
  })
  return { steps, made: empty }
}

function workOf(line: string): Pick<MigrationStep, 'work' | 'tables'> {
  const indexed = INDEX.exec(line)?.[1]
  if (indexed !== undefined) return { work: 'index', tables: [indexed] }
  const [, altered, change = ''] = ALTER.exec(line) ?? []
  if (altered !== undefined) {
    const work = TYPE.test(change) || EACH_OWN.test(change) ? 'rewrite' : CHECKED.test(change) ? 'check' : 'none'
    return { work, tables: work === 'none' ? [] : [altered] }
  }
  if (!GOES_THROUGH_ROWS.test(line)) return { work: 'none', tables: [] }
  return { work: 'rows', tables: [...new Set([...line.matchAll(TABLE_NAMED)].map(([, name]) => name!))] }
}

/** The parts of a text between semicolons, without comments. Quoted texts may hold both. */
function statementsOf(sql: string): string[] {
  const found: string[] = []
  let current = ''
  for (const [part] of sql.matchAll(
    /--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|'(?:[^']|'')*'|"[^"]*"|;|[^;'"$/-]+|[\s\S]/g,
  )) {
    if (part.startsWith('--') || part.startsWith('/*')) continue
    if (part === ';') {
      found.push(current)
      current = ''
    } else current += part
  }
  return [...found, current].filter((statement) => statement.trim() !== '')
}
