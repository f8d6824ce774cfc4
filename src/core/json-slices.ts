const QUOTE = 0x22
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_ENDS = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_ENDS = 0x7d
const COMMA = 0x2c
const SPACE = 0x20

/**
 * The texts of the elements of an array in a JSON object, so that each can be checked by its own text. If several members have that name, the
 * last counts, as for `JSON.parse`.
 *
 * @param text an object that was parsed without error
 * @returns undefined if there is no such member, or it is not an array
 */
export function elementTexts(text: string, key: string): string[] | undefined {
  let found: string[] | undefined
  forEachMember(text, (name, value) => {
    if (name === key) found = value.startsWith('[') ? elementsOf(value) : undefined
  })
  return found
}

function forEachMember(text: string, visit: (name: string, value: string) => void): void {
  let at = skipSpace(text, 0) + 1
  for (at = skipSpace(text, at); text[at] === '"'; at = skipSpace(text, at)) {
    const nameEnd = endOfValue(text, at)
    const valueStart = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const valueEnd = endOfValue(text, valueStart)
    visit(JSON.parse(text.slice(at, nameEnd)) as string, text.slice(valueStart, valueEnd))
    at = skipSpace(text, skipSpace(text, valueEnd) + 1)
  }
}

function elementsOf(text: string): string[] {
  const elements: string[] = []
  for (let at = skipSpace(text, 1); at > 0 && at < text.length && text[at] !== ']'; ) {
    const end = endOfValue(text, at)
    elements.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return elements
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at++
  return at
}

/**
 * The end of the value that begins here; -1 if there is none. Every string is passed over from its beginning: whoever looks for an end in the
 * text itself lets a sender say where that is.
 */
export function endOfValue(json: string, from: number): number {
  const first = json.charCodeAt(from)
  if (first === QUOTE) return endOfString(json, from)
  if (first !== OBJECT_OPENS && first !== LIST_OPENS) return endOfWord(json, from)
  let depth = 0
  for (let at = from; at < json.length; ) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      at = endOfString(json, at)
      if (at === -1) return -1
      continue
    }
    if (code === OBJECT_OPENS || code === LIST_OPENS) depth++
    else if ((code === OBJECT_ENDS || code === LIST_ENDS) && --depth === 0) return at + 1
    at++
  }
  return -1
}

/** The end of a number, or of `true`, `false` or `null`. */
function endOfWord(json: string, from: number): number {
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at)
    // Spaces and breaks of lines are below all else.
    if (code <= SPACE || code === COMMA || code === OBJECT_ENDS || code === LIST_ENDS) return at === from ? -1 : at
  }
  return -1
}

function endOfString(json: string, from: number): number {
  for (let quote = json.indexOf('"', from + 1); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0
    while (json.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return quote + 1
  }
  return -1
}
