import type { RE2JS } from 're2js'

/** Whether an id is in a namespace. */
export type Matcher = (id: string) => boolean

/** An expression of a registration, ready to be asked. */
export interface Expression {
  /** What every id that it matches begins with. */
  readonly prefix: string
  readonly matches: Matcher
}

/** The compiler of the engine; loaded by those who have expressions that need it. */
export type Engine = Pick<typeof RE2JS, 'compile'>

/** The engine is linear in the id for whatever expression; this bounds the factor. */
const MAX_PROGRAM = 10_000
export const MAX_EXPRESSION_CHARS = 2_000

const META = new Set('.*+?()[]{}|\\^$')
const REPEATS = new Set('*+?{')

/**
 * Compiles an expression of a namespace: a POSIX extended regular expression that must match from the id's beginning, and need not
 * reach its end unless it says so with `$`, as bridges write them. Most are a text and `.*`, and need no engine.
 *
 * @throws Error with what is wrong with it, in words
 */
export function compileExpression(text: string, engine: Engine | undefined): Expression {
  if (text.length > MAX_EXPRESSION_CHARS) throw new Error(`it is longer than ${MAX_EXPRESSION_CHARS} characters`)
  const { literal: prefix, rest } = literalPrefix(text.startsWith('^') ? text.slice(1) : text)
  const simple = simpleMatcher(prefix, rest)
  if (simple !== undefined) return { prefix, matches: simple }
  if (engine === undefined) throw new Error('it needs the engine for regular expressions')
  const compiled = engine.compile(text)
  if (compiled.programSize() > MAX_PROGRAM) throw new Error('it is too large: shorten its repetitions')
  return { prefix: hasAlternatives(text) ? '' : prefix, matches: (id) => compiled.matcher(id).lookingAt() }
}

/** Whether the engine must be loaded for this expression. */
export function needsEngine(text: string): boolean {
  const { literal, rest } = literalPrefix(text.startsWith('^') ? text.slice(1) : text)
  return simpleMatcher(literal, rest) === undefined
}

/** The text that an expression begins with, as it stands for itself, and what follows. */
function literalPrefix(text: string): { literal: string; rest: string } {
  let literal = ''
  let at = 0
  while (at < text.length) {
    const isEscaped = text[at] === '\\'
    const next = isEscaped ? text[at + 1] : text[at]
    // A backslash before a letter or digit is a class or an assertion.
    if (next === undefined || (isEscaped ? /[A-Za-z0-9]/.test(next) : META.has(next))) break
    const after = at + (isEscaped ? 2 : 1)
    if (REPEATS.has(text[after] ?? '')) break
    literal += next
    at = after
  }
  return { literal, rest: text.slice(at) }
}

/** A matcher for what follows the prefix where that is nothing, `$`, or `.*` (and a text). An id holds no line break. */
function simpleMatcher(prefix: string, rest: string): Matcher | undefined {
  if (rest === '' || rest === '.*' || rest === '.*$') return (id) => id.startsWith(prefix)
  if (rest === '$') return (id) => id === prefix
  if (!rest.startsWith('.*')) return undefined
  const { literal: end, rest: last } = literalPrefix(rest.slice(2))
  if (last === '$') return (id) => id.startsWith(prefix) && id.endsWith(end) && id.length >= prefix.length + end.length
  if (last === '') return (id) => id.startsWith(prefix) && id.includes(end, prefix.length)
  return undefined
}

/** Whether the expression is a choice as a whole, so that what it begins with is the beginning of one branch only. */
function hasAlternatives(text: string): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '\\') at++
    else if (char === '[') at = endOfClass(text, at)
    else if (char === '(') depth++
    else if (char === ')') depth--
    else if (char === '|' && depth === 0) return true
  }
  return false
}

/** The place of the bracket that closes a class; a bracket that comes first stands for itself, and named classes hold others. */
function endOfClass(text: string, start: number): number {
  let at = start + (text[start + 1] === '^' ? 2 : 1)
  if (text[at] === ']') at++
  for (; at < text.length && text[at] !== ']'; at++) {
    if (text[at] === '\\') at++
    else if (text.startsWith('[:', at)) at = Math.max(at, text.indexOf(':]', at) + 1)
  }
  return at
}

/** The expression that matches what begins with a text as it stands. */
export function escapeExpression(text: string): string {
  return text.replace(/[.*+?()[\]{}|\\^$]/g, '\\$&')
}
