import { ERROR_STATUS, type Errcode } from '../errors.ts'
import { TemplateError } from '../template.ts'

/** Translates an error of this server into a person's language. */
export type ErrorWords = (message: string, errcode: Errcode) => string

/** A part of a sentence that differs: `{1}` to `{9}`. */
const HOLE = /\{(\d)\}/g
/** The words for all errors that have none of their own. */
const OTHER = 'other'

interface Sentence {
  readonly pattern: RegExp
  readonly holes: readonly string[]
  readonly words: string
}

/**
 * Reads the words for errors in one language: a line each, `The sentence as the server says it. = The sentence in this language.`, with
 * `{1}` where it differs from case to case; then `M_SOME_CODE = ...` for all other errors with a code, and `other = ...` for the rest.
 * Without that, the sentence stays as it is. Empty lines and those that begin with `#` count for nothing.
 *
 * @throws TemplateError
 */
export function readErrorWords(source: string): ErrorWords {
  const sentences: Sentence[] = []
  const codes = new Map<string, string>()
  source.split(/\r?\n/).forEach((text, index) => {
    if (text.trim() === '' || text.startsWith('#')) return
    const at = text.indexOf(' = ')
    if (at < 0) throw new TemplateError(index + 1, 'there is no " = " between a sentence and its words')
    const [own, words] = [text.slice(0, at).trim(), text.slice(at + 3).trim()]
    if (own === '' || words === '') throw new TemplateError(index + 1, 'a side of it is empty')
    if (own === OTHER || Object.hasOwn(ERROR_STATUS, own)) codes.set(own, words)
    else if (/^M_\w+$/.test(own)) throw new TemplateError(index + 1, `there is no error ${own}`)
    else sentences.push(sentenceOf(own, words, index + 1))
  })
  return (message, errcode) => {
    for (const { pattern, holes, words } of sentences) {
      const found = pattern.exec(message)
      if (found !== null) return words.replace(HOLE, (_, hole: string) => found[holes.indexOf(hole) + 1]!)
    }
    return codes.get(errcode) ?? codes.get(OTHER) ?? message
  }
}

function sentenceOf(own: string, words: string, line: number): Sentence {
  const holes = [...own.matchAll(HOLE)].map(([, hole]) => hole!)
  const unknown = [...words.matchAll(HOLE)].find(([, hole]) => !holes.includes(hole!))
  if (unknown !== undefined) throw new TemplateError(line, `its sentence has no ${unknown[0]}`)
  const parts = own.split(/\{\d\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return { pattern: new RegExp(`^${parts.join('(.{1,200}?)')}$`, 's'), holes, words }
}
