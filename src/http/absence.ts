import { isObject, type JsonObject, type JsonValue } from '../core/json.ts'

/** The parts of a JSON schema that matter here. */
export interface Declared {
  readonly properties?: Readonly<Record<string, Declared>>
  readonly required?: readonly string[]
  readonly items?: Declared
  readonly additionalProperties?: Declared | boolean
  readonly anyOf?: readonly Declared[]
  readonly not?: { readonly type?: string }
}

/** Whether a value fits this shape. */
type Accepts = (shape: Declared, value: null) => boolean

/**
 * Removes optional keys that are `null` although their shape does not allow it, at every declared level: clients write `null` for what they
 * leave out. Gives whether there were any. Free-form objects stay unchanged.
 */
export function dropNulls(shape: Declared, value: JsonValue | undefined, accepts: Accepts): boolean {
  if (Array.isArray(value)) {
    const { items } = shape
    return items !== undefined && value.map((each) => dropNulls(items, each, accepts)).includes(true)
  }
  if (!isObject(value)) return false
  const dropped = [dropKeys(shape, value, accepts), dropEntries(shape, value, accepts)]
  return [...dropped, ...(shape.anyOf ?? []).map((each) => dropNulls(each, value, accepts))].includes(true)
}

function dropKeys({ properties = {}, required }: Declared, value: JsonObject, accepts: Accepts): boolean {
  let isDropped = false
  for (const [name, inner] of Object.entries(properties)) {
    if (!Object.hasOwn(value, name)) continue
    const isAbsent = value[name] === null && !required?.includes(name) && !accepts(inner, null)
    if (isAbsent) delete value[name]
    if (isAbsent || dropNulls(inner, value[name], accepts)) isDropped = true
  }
  return isDropped
}

/** The keys of a map are names that somebody chose, so `null` there is a wrong value, unless the shape allows it. */
function dropEntries({ additionalProperties: inner, properties }: Declared, value: JsonObject, accepts: Accepts) {
  let isDropped = false
  if (typeof inner !== 'object') return false
  for (const [name, entry] of Object.entries(value)) {
    if (properties !== undefined && Object.hasOwn(properties, name)) continue
    const isAbsent = entry === null && inner.not?.type === 'null'
    if (isAbsent) delete value[name]
    if (isAbsent || dropNulls(inner, value[name], accepts)) isDropped = true
  }
  return isDropped
}
