import type { JsonObject } from '../json.ts'
import { endOfValue } from '../json-slices.ts'
import { STICKY } from './sticky.ts'

const TEXT = String.raw`"[^"\\]*"`
const LIST = String.raw`\[(?:${TEXT}(?:,${TEXT})*)?\]`
/** What stands before the content of most events, and what after it: each member that servers write, and no other. */
const BEFORE_CONTENT = new RegExp(String.raw`\{"auth_events":${LIST},"content":`, 'y')
const AFTER_CONTENT = new RegExp(
  [
    String.raw`,"depth":\d+,"hashes":\{"sha256":${TEXT}\}(?:,"origin":${TEXT})?,"origin_server_ts":(\d+),"prev_events":${LIST}`,
    String.raw`(?:,"room_id":${TEXT})?,"sender":(${TEXT}),"signatures":\{${TEXT}:\{${TEXT}:${TEXT}\}\}`,
    String.raw`(?:,"state_key":(${TEXT}))?,"type":${TEXT}\}$`,
  ].join(''),
  'y',
)

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
  return usualTexts(json) ?? textsByMember(json)
}

/** The same of an event that has the usual members only: the engine matches it as a whole, in a third of the time. */
function usualTexts(json: string): MemberTexts | undefined {
  const usual = findUsual(json)
  if (usual === undefined) return undefined
  const { from, to, found } = usual
  return {
    content: json.slice(from, to),
    sender: found[2]!,
    originServerTs: found[1]!,
    stateKey: found[3],
    isPlain: true,
  }
}

function findUsual(json: string) {
  BEFORE_CONTENT.lastIndex = 0
  if (!BEFORE_CONTENT.test(json)) return undefined
  const from = BEFORE_CONTENT.lastIndex
  const to = endOfValue(json, from)
  if (to === -1) return undefined
  AFTER_CONTENT.lastIndex = to
  const found = AFTER_CONTENT.exec(json)
  return found === null ? undefined : { from, to, found }
}

const MAX_BEGIN = 0x7fff
const MAX_LENGTH = 0xffff

/**
 * Where the content of an event stands in its text, if the event has the usual members only, and none of sender, type and state key needs an
 * escape: the byte where it begins, counted from 1, times 65536, and its length in bytes. Null for others.
 *
 * @param ts the event's time, in milliseconds, as it is stored beside the text
 */
export function contentPlace(json: string, ts: number): number | null {
  const usual = findUsual(json)
  if (usual === undefined || usual.found[1] !== String(ts)) return null
  const { from, to } = usual
  const begin = Buffer.byteLength(json.slice(0, from)) + 1
  const length = Buffer.byteLength(json.slice(from, to))
  return begin > MAX_BEGIN || length > MAX_LENGTH ? null : begin * 2 ** 16 + length
}

function textsByMember(json: string): MemberTexts | undefined {
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

/** The parsed content of an event, without the rest of it. */
export function contentIn(json: string): JsonObject {
  const texts = memberTexts(json)
  return texts ? JSON.parse(texts.content) : JSON.parse(json).content
}
