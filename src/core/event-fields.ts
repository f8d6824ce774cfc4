import { isObject, type JsonObject, type JsonValue } from './json.ts'
import { parsePropertyPath } from './property-path.ts'

/** The fields to keep of an object: each whole, or parts of it. */
export type FieldTree = ReadonlyMap<string, FieldTree | 'whole'>
type GrowingTree = Map<string, GrowingTree | 'whole'>

/** Compiles `event_fields`: dot-separated paths, `\.` for a dot within a name. */
export function compileFields(paths: readonly string[]): FieldTree {
  const tree: GrowingTree = new Map()
  for (const path of paths) {
    const names = parsePropertyPath(path)
    let branch = tree
    for (const [index, name] of names.entries()) {
      const known = branch.get(name)
      if (known === 'whole') break
      if (index === names.length - 1) branch.set(name, 'whole')
      else {
        const next: GrowingTree = known ?? new Map()
        branch.set(name, next)
        branch = next
      }
    }
  }
  return tree
}

/** The object with only the wanted fields. It shares the values with the original. */
export function projectFields(object: JsonObject, fields: FieldTree): JsonObject {
  const kept: [string, JsonValue][] = []
  for (const [name, wanted] of fields) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined
    if (value === undefined) continue
    if (wanted === 'whole') {
      kept.push([name, value])
    } else if (isObject(value)) {
      const part = projectFields(value, wanted)
      if (Object.keys(part).length > 0) kept.push([name, part])
    }
  }
  return Object.fromEntries(kept)
}
