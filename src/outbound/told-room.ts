import { isObject, type JsonObject, type JsonValue, type ReadJson, readJson } from '../core/json.ts'
import { ElementSplitter } from '../core/json-elements.ts'
import { TooLargeError } from './failures.ts'
import { MAX_EVENTS_ANSWER_BYTES, MAX_TOLD_ELEMENTS } from './limits.ts'

/** Events as another server told them, each read when it is asked for: a large room is many, and few are needed at a time. */
export interface EventList {
  readonly length: number
  at(index: number): ReadJson | undefined
}

/** An answer with long lists of events. */
export interface ToldLists {
  list(name: string): EventList
  /** What else it says; undefined when the answer is no JSON object. */
  readonly rest: JsonObject | undefined
}

/**
 * Reads an answer whose lists of events may be long: an object, or a list with the object in second place.
 * @throws TooLargeError, and what the body throws
 */
export async function readToldLists(body: AsyncIterable<Buffer>, names: readonly string[]): Promise<ToldLists> {
  const splitter = new ElementSplitter(names)
  for await (const chunk of body) {
    splitter.push(chunk)
    const isTooLong = splitter.elements > MAX_TOLD_ELEMENTS || splitter.restBytes > MAX_EVENTS_ANSWER_BYTES
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
  }
}

/** One that is no JSON is no event, and spoils no other. */
function readOrNull(bytes: Buffer): ReadJson {
  try {
    return readJson(bytes)
  } catch {
    return { value: null, offence: undefined }
  }
}
