export type JsonPrimitive = string | number | boolean | null
export type JsonValue = JsonPrimitive | JsonValue[] | JsonObject
/** Keys may be anything, `__proto__` included: copy with spread, never with `Object.assign` or by assignment of an unknown key. */
export interface JsonObject {
  [key: string]: JsonValue
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
