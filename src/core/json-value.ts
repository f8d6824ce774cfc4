/** A bigint is an integer beyond 2^53-1. Only `readExactJson` and `parseExact`, which read events, give bigints. */
export type JsonPrimitive = string | number | bigint | boolean | null
export type JsonValue = JsonPrimitive | JsonValue[] | JsonObject
/** Keys may be anything, `__proto__` included: copy with spread, never with `Object.assign` or by assignment of an unknown key. */
export interface JsonObject {
  [key: string]: JsonValue
}
