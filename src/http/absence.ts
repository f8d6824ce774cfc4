import { isObject, type JsonObject, type JsonValue } from '../core/json.ts'

/** What is read here of a shape. */
export interface Declared {
  readonly properties?: Readonly<Record<string, Declared>>
  readonly required?: readonly string[]
  readonly items?: Declared
  readonly additionalProperties?: Declared | boolean
  readonly anyOf?: readonly Declared[]
  readonly not?: { readonly type?: string }
}

/** Whether a value of its own has this shape. */
type Accepts = (shape: Declared, value: null) => boolean

/**
 * Takes away the optional keys of a value that are `null` although their shape has no meaning for it, at every level that is declared:
 * clients write what they leave out as `null`. Tells whether there were any. What is free-form is not touched.
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

/** Of a map the keys are names that somebody chose, so that `null` is a wrong value; unless the shape says that it is none. */
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
