import type { RE2JS } from 're2js'

/** Whether an id is in a namespace. */
export type Matcher = (id: string) => boolean

/** A compiled expression of a registration. */
export interface Expression {
  /** The common beginning of all matching ids. */
  readonly prefix: string
  readonly matches: Matcher
}

/** The compiler of the regular-expression engine, which is loaded only if an expression needs it. */
export type Engine = Pick<typeof RE2JS, 'compile'>

/** The engine is linear in the id for every expression; this limits the factor. */
const MAX_PROGRAM = 10_000
export const MAX_EXPRESSION_CHARS = 2_000

const META = new Set('.*+?()[]{}|\\^$')
const REPEATS = new Set('*+?{')

/**
 * Compiles an expression of a namespace: a POSIX extended regular expression that must match from the beginning of the id, and need not match
 * its end unless it has a `$`, as bridges use them. Most expressions are a text and `.*`, and need no engine.
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

/** The literal text at the beginning of an expression, and the rest. */
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

/** A matcher for a rest that is empty, `$`, or `.*` (and a text). Ids contain no line breaks. */
function simpleMatcher(prefix: string, rest: string): Matcher | undefined {
  if (rest === '' || rest === '.*' || rest === '.*$') return (id) => id.startsWith(prefix)
  if (rest === '$') return (id) => id === prefix
  if (!rest.startsWith('.*')) return undefined
  const { literal: end, rest: last } = literalPrefix(rest.slice(2))
  if (last === '$') return (id) => id.startsWith(prefix) && id.endsWith(end) && id.length >= prefix.length + end.length
  if (last === '') return (id) => id.startsWith(prefix) && id.includes(end, prefix.length)
  return undefined
}

/** Whether the expression has alternatives at its top level, so that its beginning belongs to one branch only. */
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

/** The index of the bracket that closes a class. A bracket in first place is literal, and named classes have brackets of their own. */
function endOfClass(text: string, start: number): number {
  let at = start + (text[start + 1] === '^' ? 2 : 1)
  if (text[at] === ']') at++
  for (; at < text.length && text[at] !== ']'; at++) {
    if (text[at] === '\\') at++
    else if (text.startsWith('[:', at)) at = Math.max(at, text.indexOf(':]', at) + 1)
  }
  return at
}

/** An expression that matches ids which begin with this literal text. */
export function escapeExpression(text: string): string {
  return text.replace(/[.*+?()[\]{}|\\^$]/g, '\\$&')
}
