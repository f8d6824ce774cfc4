import type { Shape } from '../core/shapes.ts'

/** Whether a value has a shape. */
export type Check = (value: unknown) => boolean

type Formats = Readonly<Record<string, (text: string) => boolean>>

/** What says nothing about values. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['description', 'title', 'default', 'examples'])

const TYPES: Readonly<Record<string, Check>> = {
  string: (value) => typeof value === 'string',
  number: (value) => Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: isMap,
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A keyword's check of values; undefined for a form of the keyword that is not known here. */
type Keyword = (argument: unknown, schema: Shape, formats: Formats) => Check | undefined

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type: (names) => anyOf([names].flat().map((name) => TYPES[name as string])),
  const: (wanted) => (isPrimitive(wanted) ? (value) => value === wanted : undefined),
  enum: (wanted) =>
    Array.isArray(wanted) && wanted.every(isPrimitive) ? (value) => wanted.includes(value as string) : undefined,
  anyOf: (shapes, _, formats) => anyOf((shapes as Shape[]).map((shape) => quickCheck(shape, formats))),
  not(shape, _, formats) {
    const check = quickCheck(shape as Shape, formats)
    return check && ((value) => !check(value))
  },
  format(name, _, formats) {
    const hasFormat = formats[name as string]
    return hasFormat && ((value) => typeof value !== 'string' || hasFormat(value))
  },
  pattern(text) {
    const pattern = new RegExp(text as string, 'u')
    return (value) => typeof value !== 'string' || pattern.test(value)
  },
  minLength: (least) => (value) => typeof value !== 'string' || charsIn(value) >= (least as number),
  maxLength: (most) => (value) => typeof value !== 'string' || charsIn(value) <= (most as number),
  minimum: (least) => (value) => !Number.isFinite(value) || (value as number) >= (least as number),
  maximum: (most) => (value) => !Number.isFinite(value) || (value as number) <= (most as number),
  minItems: (least) => (value) => !Array.isArray(value) || value.length >= (least as number),
  maxItems: (most) => (value) => !Array.isArray(value) || value.length <= (most as number),
  minProperties: (least) => (value) => !isMap(value) || Object.keys(value).length >= (least as number),
  maxProperties: (most) => (value) => !isMap(value) || Object.keys(value).length <= (most as number),
  items(shape, _, formats) {
    const check = Array.isArray(shape) ? undefined : quickCheck(shape as Shape | boolean, formats)
    return check && ((value) => !Array.isArray(value) || value.every(check))
  },
  required: (names) => (value) => !isMap(value) || (names as string[]).every((name) => Object.hasOwn(value, name)),
  properties(shapes, _, formats) {
    const checks: (readonly [string, Check])[] = []
    for (const [name, shape] of Object.entries(shapes as Record<string, Shape>)) {
      const check = quickCheck(shape, formats)
      if (check === undefined) return undefined
      checks.push([name, check])
    }
    return (value) =>
      !isMap(value) || checks.every(([name, check]) => !Object.hasOwn(value, name) || check(value[name]))
  },
  additionalProperties(shape, { properties = {} }, formats) {
    const declared = new Set(Object.keys(properties as object))
    const check = quickCheck(shape as Shape | boolean, formats)
    return (
      check &&
      ((value) => !isMap(value) || Object.keys(value).every((name) => declared.has(name) || check(value[name])))
    )
  },
}

/**
 * A check that is ready at once. It says only whether a value has the shape: the compiled check says what is wrong, and takes a thousand times
 * longer to make, so that a server is better off without it as long as all that clients send is right.
 *
 * @returns undefined if the shape has a keyword that is not known here
 */
export function quickCheck(shape: Shape | boolean, formats: Formats): Check | undefined {
  if (typeof shape === 'boolean') return () => shape
  const checks: Check[] = []
  for (const [name, argument] of Object.entries(shape)) {
    if (argument === undefined || ANNOTATIONS.has(name)) continue
    const check = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name]!(argument, shape, formats) : undefined
    if (check === undefined) return undefined
    checks.push(check)
  }
  if (checks.length === 1) return checks[0]!
  return (value) => {
    for (const check of checks) if (!check(value)) return false
    return true
  }
}

function anyOf(checks: readonly (Check | undefined)[]): Check | undefined {
  if (checks.includes(undefined)) return undefined
  if (checks.length === 1) return checks[0]
  return (value) => checks.some((check) => check!(value))
}

function isPrimitive(value: unknown): value is string | number | boolean | null {
  return typeof value !== 'object' || value === null
}

/** Characters as JSON schemas count them: one for a pair of surrogates. */
function charsIn(text: string): number {
  let pairs = 0
  for (let index = 0; index < text.length - 1; index++) {
    const isHigh = (text.charCodeAt(index) & 0xfc00) === 0xd800
    if (isHigh && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      pairs++
      index++
    }
  }
  return text.length - pairs
}
