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
  for (let at = skipSpace(text, 1); at < text.length && text[at] !== ']'; ) {
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

/** The end of the value that begins here. */
function endOfValue(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const char = text[at]!
    if (char === '"') at = closingQuote(text, at)
    else if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') depth--
    const isOver = depth === 0 && ('"}]'.includes(char) || ',:}] \n\r\t'.includes(text[at + 1] ?? ' '))
    if (isOver) return at + 1
    if (depth < 0) return at
  }
  return text.length
}

function closingQuote(text: string, from: number): number {
  let at = from + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}
