import { setImmediate } from 'node:timers/promises'
import { isObject, type JsonObject, type JsonValue, type ReadJson, readExactJson } from '../core/json.ts'
import { ElementSplitter } from '../core/json-elements.ts'
import { TooLargeError } from './failures.ts'
import { MAX_EVENTS_ANSWER_BYTES, MAX_LISTED_EVENTS } from './limits.ts'

/** Events in the answer of another server. Each is parsed on access, because a large room has many and few are needed at a time. */
export interface EventList {
  readonly length: number
  at(index: number): ReadJson | undefined
  /** The number or plain string of a key, found without parsing the event; undefined if it needs parsing. */
  glance?(index: number, name: string): string | number | undefined
}

/** An answer with long lists of events. */
export interface EventLists {
  list(name: string): EventList
  /** The rest of the answer; undefined if it is not a JSON object. */
  readonly rest: JsonObject | undefined
}

/** After this much of a body the reader yields: a body that comes faster than it is read would otherwise block everything to its end. */
const BYTES_AT_ONCE = 128 * 1024

/**
 * Reads an answer whose lists of events may be long: an object, or a list with the object in second place.
 * @throws TooLargeError, and what the body throws
 */
export async function readEventLists(body: AsyncIterable<Buffer>, names: readonly string[]): Promise<EventLists> {
  const splitter = new ElementSplitter(names)
  let untilTurn = BYTES_AT_ONCE
  for await (const chunk of body) {
    splitter.push(chunk)
    untilTurn -= chunk.length
    if (untilTurn < 0) {
      untilTurn = BYTES_AT_ONCE
      await setImmediate()
    }
    const isTooLong = splitter.elements > MAX_LISTED_EVENTS || splitter.restBytes > MAX_EVENTS_ANSWER_BYTES
    if (isTooLong) throw new TooLargeError(MAX_EVENTS_ANSWER_BYTES)
  }
  const { lists, rest } = splitter.end()
  const said = readOrNull(rest).value
  const object = Array.isArray(said) ? said[1] : said
  return {
    list: (name) => listOf(lists.get(name) ?? []),
    rest: isObject(object as JsonValue) ? (object as JsonObject) : undefined,
  }
}

function listOf(elements: readonly Buffer[]): EventList {
  return {
    length: elements.length,
    at(index) {
      const bytes = elements[index]
      return bytes && readOrNull(bytes)
    },
    glance(index, name) {
      const bytes = elements[index]
      return bytes && glanceAt(bytes, name)
    },
  }
}

/** Null for an element that is not JSON, so that it does not fail the others. */
function readOrNull(bytes: Buffer): ReadJson {
  try {
    return readExactJson(bytes)
  } catch {
    return { value: null, offence: undefined }
  }
}

/** The longest identifier, its quotes, and what follows it. */
const GLANCED_BYTES = 258
const PLAIN_VALUE = /^ ?(?:"([ !#-[\]-~]*)"|([0-9]{1,15})) ?[,}]/

/** Finds a quoted key that occurs only once in the text. It cannot be inside a string, because there its quotes would be escaped. */
function glanceAt(bytes: Buffer, name: string): string | number | undefined {
  const key = `"${name}":`
  const at = bytes.indexOf(key, 0, 'latin1')
  const from = at + key.length
  if (at === -1 || bytes.indexOf(key, from, 'latin1') !== -1) return undefined
  const found = PLAIN_VALUE.exec(bytes.toString('latin1', from, from + GLANCED_BYTES))
  if (!found) return undefined
  return found[1] ?? Number(found[2])
}
