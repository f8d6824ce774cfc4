import type { JsonBytes } from '../core/json-bytes.ts'

/** Writes an object whose values `write` writes. */
export function writeMap<T>(out: JsonBytes, map: ReadonlyMap<string, T>, write: (value: T) => void): void {
  out.text('{')
  let isFirst = true
  for (const [key, value] of map) {
    out.key(key, isFirst)
    isFirst = false
    write(value)
  }
  out.text('}')
}
