import { isObject, type JsonObject, type JsonValue } from './json.ts'

/** The names on the way from an event to one of its properties. */
export type PropertyPath = readonly string[]

/**
 * Reads `content.m\.relates_to.rel_type` (appendices, "Dot-separated property paths").
 * `\.` and `\\` stand for the character itself; any other backslash is one.
 */
export function parsePropertyPath(text: string): PropertyPath {
  const names: string[] = []
  let name = ''
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === '.') {
      names.push(name)
      name = ''
    } else if (character === '\\' && /[.\\]/.test(text.charAt(at + 1))) {
      name += text.charAt(++at)
    } else {
      name += character
    }
  }
  return [...names, name]
}

/** The value at a path, or undefined if there is none. Inherited properties do not count. */
export function propertyAt(object: JsonObject, path: PropertyPath): JsonValue | undefined {
  let value: JsonValue | undefined = object
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}
