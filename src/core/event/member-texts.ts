import { endOfValue } from '../json-slices.ts'
import { STICKY } from './sticky.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OBJECT_ENDS = 0x7d

/** The texts of some members of an event, as JSON. */
export interface MemberTexts {
  readonly content: string
  readonly sender: string
  readonly originServerTs: string
  readonly stateKey: string | undefined
  /** Whether it has no other member that clients see. */
  readonly isPlain: boolean
}

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
    // A name with an escaped quote could pass what it holds off as other members.
    if (json.charCodeAt(nameEnd + 1) !== COLON || json.charCodeAt(nameEnd - 1) === BACKSLASH) return undefined
    const from = nameEnd + 2
    const to = endOfValue(json, from)
    if (to === -1) return undefined
    const name = at + 1
    switch (nameEnd - name) {
      case 'content'.length:
        if (json.startsWith('content', name)) content = json.slice(from, to)
        else if (json.startsWith('redacts', name)) isPlain = false
        break
      case 'sender'.length:
        if (json.startsWith('sender', name)) sender = json.slice(from, to)
        break
      case 'origin_server_ts'.length:
        if (json.startsWith('origin_server_ts', name)) originServerTs = json.slice(from, to)
        break
      case 'state_key'.length:
        if (json.startsWith('state_key', name)) stateKey = json.slice(from, to)
        break
      case STICKY.length:
        if (json.startsWith(STICKY, name)) isPlain = false
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
