import { placeOf, SHARD_KEY } from './placement.ts'

/** A statement in the sources, as far as it is written in one place. */
export interface Statement {
  readonly file: string
  readonly line: number
  readonly text: string
}

/**
 * Where Citus would run a statement. `one shard`: it names one room or one user, and all its tables lie with them. `several`: it names a list of
 * them, which becomes a transaction over several nodes. `all`: it names none. `rooms and users`: it touches tables of both kinds. `in steps`: it
 * inserts and is more than an INSERT, so each part runs by itself.
 */
export type Reach = 'no shard' | 'one shard' | 'several' | 'all' | 'rooms and users' | 'in steps'

export const REACHES: readonly Reach[] = ['no shard', 'one shard', 'several', 'all', 'rooms and users', 'in steps']

const BEGINNING = /^\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s/

/** The statements in a source file. What a template puts in from elsewhere is left out. */
export function statementsIn(file: string, code: string): Statement[] {
  const found: Statement[] = []
  const literal = /`((?:[^`\\]|\\.)*)`|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g
  for (const match of code.matchAll(literal)) {
    const text = match[1] ?? match[2] ?? match[3] ?? ''
    if (BEGINNING.test(text)) found.push({ file, line: code.slice(0, match.index).split('\n').length, text })
  }
  return found
}

export function tablesIn(text: string, known: ReadonlySet<string>): string[] {
  const names = [...text.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|USING|,)\s+(?:ONLY\s+)?([a-z_]+)\b/g)].map(
    ([, name]) => name!,
  )
  return [...new Set(names)].filter((name) => known.has(name))
}

/** Judged by the text alone: by the tables and conditions that stand in it. */
export function reachOf({ text }: Statement, known: ReadonlySet<string>): Reach {
  const tables = tablesIn(text, known)
  const sharded = tables.filter((table) => ['room', 'user'].includes(placeOf(table)))
  const [place] = sharded.map((table) => placeOf(table))
  if (place !== 'room' && place !== 'user') return 'no shard'
  if (sharded.some((table) => placeOf(table) !== place)) return 'rooms and users'
  const writes = [...text.matchAll(/\b(?:INSERT INTO|UPDATE [a-z_]+ |DELETE FROM)/g)].length
  if (/\bINSERT INTO\b/.test(text) && (writes > 1 || /^\s*WITH\b/.test(text))) return 'in steps'
  const key = SHARD_KEY[place]
  const isValues = new RegExp(`INSERT INTO [a-z_ ]+\\([^)]*\\b${key}\\b[^)]*\\)\\s*VALUES\\s*\\(`).test(text)
  if (isValues) return 'one shard'
  if (new RegExp(`\\b${key} = ANY|\\bunnest\\(`, 'i').test(text)) return 'several'
  const bound = [
    ...text.matchAll(new RegExp(`\\b${key} = (?:\\$\\d|[a-z_]+\\.${key})|USING \\([^)]*\\b${key}\\b`, 'g')),
  ]
  return bound.length >= sharded.length && new RegExp(`\\b${key} = \\$\\d`).test(text) ? 'one shard' : 'all'
}
