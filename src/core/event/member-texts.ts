import { STICKY } from './sticky.ts'

/** The texts of some members of an event, as JSON. */
export interface MemberTexts {
  readonly content: string
  readonly sender: string
  readonly originServerTs: string
  readonly stateKey: string | undefined
  /** Whether it has no other member that clients see. */
  readonly isPlain: boolean
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_ENDS = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_ENDS = 0x7d

/**
 * Finds members of an event in its canonical JSON without parsing it: most events are only shown, and a parsed event takes more time and
 * memory than its text.
 *
 * @param json was checked when it was stored
 * @returns undefined for a text that is not canonical, or lacks one of these members: parse it
 */
export function memberTexts(json: string): MemberTexts | undefined {
  let content: string | undefined
  let sender: string | undefined
  let originServerTs: string | undefined
  let stateKey: string | undefined
  let isPlain = true
  let at = 1
  while (json.charCodeAt(at) === QUOTE) {
    const nameEnd = json.indexOf('"', at + 1)
    if (json.charCodeAt(nameEnd + 1) !== COLON) return undefined
    const from = nameEnd + 2
    const to = endOfValue(json, from)
    if (to === -1) return undefined
    switch (json.slice(at + 1, nameEnd)) {
      case 'content':
        content = json.slice(from, to)
        break
      case 'sender':
        sender = json.slice(from, to)
        break
      case 'origin_server_ts':
        originServerTs = json.slice(from, to)
        break
      case 'state_key':
        stateKey = json.slice(from, to)
        break
      case 'redacts':
      case STICKY:
        isPlain = false
        break
      default:
    }
    const after = json.charCodeAt(to)
    if (after !== COMMA) {
      if (after !== OBJECT_ENDS || to + 1 !== json.length) return undefined
      if (content === undefined || sender === undefined || originServerTs === undefined) return undefined
      return { content, sender, originServerTs, stateKey, isPlain }
    }
    at = to + 1
  }
  return undefined
}

/** The end of the value that begins here; -1 if there is none. */
function endOfValue(json: string, from: number): number {
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
    if (code === COMMA || code === OBJECT_ENDS) return at === from ? -1 : at
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
