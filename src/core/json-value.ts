/** A bigint is an integer beyond 2^53-1, which only `readExactJson` and `parseExact` give: what is read for events. */
export type JsonPrimitive = string | number | bigint | boolean | null
export type JsonValue = JsonPrimitive | JsonValue[] | JsonObject
/** Keys may be anything, `__proto__` included: copy with spread, never with `Object.assign` or by assignment of an unknown key. */
export interface JsonObject {
  [key: string]: JsonValue
}
