import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { PROJECT_ROOT } from './project.ts'

const SRC = join(PROJECT_ROOT, 'src')
const TEST = join(PROJECT_ROOT, 'test')

interface Import {
  /** The imported file, from `src/` on. */
  readonly target: string
  readonly isType: boolean
}

export interface Source {
  /** `domain/rooms/send.ts` */
  readonly name: string
  /** The folder of `src/` that the file lies in, empty for those at the top. */
  readonly layer: string
  readonly text: string
  /** Without comments. */
  readonly code: string
  /** Files of the project only. */
  readonly imports: readonly Import[]
  readonly lines: number
}

/** Every file of `src/`, by name. */
export const SOURCES: readonly Source[] = namesIn(SRC).map(readSource)

/** Every file of `test/`, by name, without comments. */
export const TEST_SOURCES = namesIn(TEST).map((name) => ({
  name,
  code: codeOf(readFileSync(join(TEST, name), 'utf8')),
}))

function namesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .sort()
}

function codeOf(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

function readSource(name: string): Source {
  const text = readFileSync(join(SRC, name), 'utf8')
  const code = codeOf(text)
  const imports = [
    ...code.matchAll(/(?:import|export)\s+(type\s)?[^'";]*?from\s+'(\.[^']+)'|import\('(\.[^']+)'\)/g),
  ].map(([, type, from, dynamic]) => ({
    target: relative(SRC, join(SRC, dirname(name), from ?? dynamic ?? '')),
    isType: type !== undefined,
  }))
  const layer = name.includes('/') ? name.slice(0, name.indexOf('/')) : ''
  return { name, layer, text, code, imports, lines: text.split('\n').length }
}
