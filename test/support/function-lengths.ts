export interface FunctionLength {
  readonly name: string
  /** Where it begins, from 1. */
  readonly line: number
  /** From its first line to its closing brace, with all that is within. */
  readonly lines: number
}

/** What begins like a method and is none. */
const STATEMENT = /^\s*(?:if|for|while|switch|catch|return|await|throw|new|else|do|try|super|yield)\b/
const DECLARATION = /^\s*(?:export )?(?:default )?(?:async )?function\b/
const METHOD =
  /^\s*(?:(?:static|async|get|set|override|private|protected|public) )*\*?(?:#?[\w$]+|'[^']+'|\[[^\]]+\])(?:<.*>)?\(/
const NAME =
  /(?:function\*? ?|const |let |(?:static|async|get|set|override) \*?|^\s*)(#?[A-Za-z_$][\w$]*)\s*(?:[(<:=]|$)/

/**
 * The functions in a file, each with its length. No parser is needed: the formatter has a function end at the first line that closes a
 * brace at the indentation at which it begins.
 */
export function functionLengths(text: string): FunctionLength[] {
  const lines = text.split('\n')
  return lines.flatMap((first, index) => {
    const opening = openingOf(lines, index)
    if (opening === undefined) return []
    const indent = indentOf(first)
    const end = lines.findIndex((line, at) => at > opening && isClosing(line, indent))
    if (end === -1) return []
    return [{ name: NAME.exec(first)?.[1] ?? first.trim(), line: index + 1, lines: end - index + 1 }]
  })
}

/** The line that opens the body of the function that begins in a line; undefined where none does. */
function openingOf(lines: readonly string[], index: number): number | undefined {
  const first = lines[index]!
  if (/^\s*(?:\*|\/\/|\/\*)/.test(first)) return undefined
  if (/=> \{$/.test(first) && !/^\s*[)}]/.test(first)) return index
  const mayBegin =
    DECLARATION.test(first) || (METHOD.test(first) && !STATEMENT.test(first)) || /= (?:async )?\($/.test(first)
  if (!mayBegin) return undefined
  if (/ \{$/.test(first)) return index
  if (!/[({<[]$/.test(first)) return undefined
  // Its parameters take several lines.
  const indent = indentOf(first)
  const isAtIndent = (line: string): boolean => line.startsWith(indent) && /^[)}>\]]/.test(line.slice(indent.length))
  for (let at = index + 1; at < lines.length; at++) {
    const line = lines[at]!
    if (!isAtIndent(line)) continue
    if (/^\s*(?:\)|[}>\]].*\))(?::.*)?(?: =>)? \{$/.test(line)) return at
    if (!/[({<[]$/.test(line)) return undefined
  }
  return undefined
}

function indentOf(line: string): string {
  return /^\s*/.exec(line)![0]
}

function isClosing(line: string, indent: string): boolean {
  return line.startsWith(`${indent}}`) && !/[({[]$/.test(line)
}
