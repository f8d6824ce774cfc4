import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT_ROOT } from './project.ts'

/** What stands in quotes after the words that begin a test or a table of cases. */
const QUOTED = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g

const texts = new Map<string, string>()

/** A test file below `test/`; empty where there is none. */
export function textOf(file: string): string {
  const path = join(PROJECT_ROOT, 'test', file)
  const text = texts.get(file) ?? (existsSync(path) ? readFileSync(path, 'utf8') : '')
  texts.set(file, text)
  return text
}

/** Whether a test, or a case of one, is called so. */
export function hasTest(file: string, name: string): boolean {
  return (textOf(file).match(QUOTED) ?? []).some((quoted) => quoted.includes(name))
}
