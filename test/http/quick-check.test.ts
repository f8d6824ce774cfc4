import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { isEventId, isRoomAlias, isRoomId, isUserId } from '../../src/core/ids.ts'
import type { Shape } from '../../src/core/shapes.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { quickCheck } from '../../src/http/quick-check.ts'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { appEndpoints } from '../../src/routes/app/index.ts'
import { identityEndpoints } from '../../src/routes/identity/index.ts'
import { Dice } from '../federation/dice.ts'
import { CLIENT_API, SERVER_API } from '../support/interfaces.ts'

const ENDPOINTS: readonly Endpoint[] = [
  ...CLIENT_API,
  ...SERVER_API,
  ...appEndpoints,
  ...adminEndpoints,
  ...identityEndpoints,
]
const FORMATS = { 'user-id': isUserId, 'room-id': isRoomId, 'event-id': isEventId, 'room-alias': isRoomAlias }
const ajv = new Ajv({
  strict: false,
  strictNumbers: true,
  ownProperties: true,
  validateSchema: false,
  formats: FORMATS,
})

// biome-ignore lint/suspicious/noExplicitAny: any JSON
type Json = any

const TEXTS = [
  '',
  'a',
  '1',
  '@ann:home.test',
  '!room:home.test',
  '$event',
  '#all:home.test',
  'true',
  '\ud800',
  '😀'.repeat(3),
]
const NUMBERS = [0, -0, 1, -1, 1.5, 2 ** 53, -(2 ** 60), 1e300, Number.POSITIVE_INFINITY, 10, 64, 255, 1_000]

function anything(dice: Dice, depth: number): Json {
  const kind = dice.below(depth > 2 ? 4 : 6)
  if (kind === 0) return dice.pick(TEXTS)
  if (kind === 1) return dice.pick(NUMBERS)
  if (kind === 2) return dice.pick([true, false])
  if (kind === 3) return null
  if (kind === 4) return Array.from({ length: dice.below(4) }, () => anything(dice, depth + 1))
  return Object.fromEntries(
    Array.from({ length: dice.below(4) }, () => [dice.pick(['a', 'type', '__proto__x']), anything(dice, depth + 1)]),
  )
}

/** A value that has a shape more often than not. */
function valueFor(shape: Json, dice: Dice, depth = 0): Json {
  if (dice.chance(0.06) || depth > 6) return anything(dice, depth)
  if (shape.anyOf) return valueFor(dice.pick(shape.anyOf), dice, depth)
  if ('const' in shape) return shape.const
  if (shape.enum) return dice.pick(shape.enum)
  const [first, ...others] = [shape.type].flat()
  const type = others.length > 0 ? dice.pick([first, ...others]) : first
  if (type === 'object' || shape.properties) return objectOf(shape, dice, depth)
  if (type === 'array') {
    const length = dice.pick([shape.minItems ?? 0, 1, 2, shape.maxItems ?? 3, (shape.maxItems ?? 3) + 1])
    return Array.from({ length: Math.min(length, 1_100) }, () => valueFor(shape.items ?? {}, dice, depth + 1))
  }
  if (type === 'string') return textOf(shape, dice)
  if (type === 'integer' || type === 'number') {
    const edges = [shape.minimum, shape.maximum].filter((edge) => edge !== undefined)
    return dice.pick([...NUMBERS, ...edges, ...edges.map((edge) => edge + 1), ...edges.map((edge) => edge - 1)])
  }
  if (type === 'boolean') return dice.chance(0.5)
  return type === 'null' ? null : anything(dice, depth)
}

function textOf({ minLength, maxLength }: Json, dice: Dice): string {
  const edges = [minLength, maxLength, maxLength && maxLength + 1].filter((edge) => edge !== undefined)
  const length = dice.pick([2, ...edges])
  return dice.pick([...TEXTS, dice.pick(['x', '😀', '\udc00']).repeat(Math.min(length, 5_000))])
}

function objectOf(
  { properties = {}, required = [], additionalProperties: other }: Json,
  dice: Dice,
  depth: number,
): Json {
  const made: Json = {}
  for (const [name, inner] of Object.entries(properties)) {
    if (required.includes(name) ? dice.chance(0.97) : dice.chance(0.5)) made[name] = valueFor(inner, dice, depth + 1)
  }
  const more = typeof other === 'object' ? dice.below(3) : dice.below(10) === 0 ? 1 : 0
  for (let index = 0; index < more; index++) {
    made[dice.pick([...TEXTS, 'constructor'])] =
      typeof other === 'object' ? valueFor(other, dice, depth + 1) : anything(dice, depth)
  }
  return made
}

/** All shapes of bodies and queries, each once. */
const shapes = new Map<string, Shape>(
  ENDPOINTS.flatMap(({ options: { body, query } }) => [body, query])
    .filter((shape) => shape !== undefined)
    .map((shape) => [JSON.stringify(shape), shape]),
)

test('the quick check and the compiled one agree on every shape that a request may have', () => {
  const dice = new Dice(5)
  let right = 0
  let all = 0
  const unknown: string[] = []
  for (const [text, shape] of shapes) {
    const check = quickCheck(shape, FORMATS)
    if (check === undefined) {
      unknown.push(text)
      continue
    }
    const compiled = ajv.compile(shape)
    for (let round = 0; round < 30; round++) {
      const value = valueFor(shape, dice)
      const isRight = compiled(value)
      expect(check(value), `${text} of ${JSON.stringify(value)}`).toBe(isRight)
      all++
      if (isRight) right++
    }
  }
  expect(unknown).toEqual([])
  expect(shapes.size).toBeGreaterThan(150)
  // Neither all right nor all wrong: else nothing was tried.
  expect(right / all).toBeGreaterThan(0.2)
  expect(right / all).toBeLessThan(0.9)
})

test('a shape with a keyword that it does not know is left to the compiled check', () => {
  for (const shape of [
    { type: 'number', multipleOf: 2 },
    { type: 'array', items: [{}] },
    { const: {} },
    { type: 'odd' },
  ]) {
    expect(quickCheck(shape, FORMATS)).toBeUndefined()
    expect(quickCheck({ type: 'object', properties: { inner: shape } }, FORMATS)).toBeUndefined()
  }
})

test('a shape that is true or false says the same of every value', () => {
  for (const inner of [true, false]) {
    for (const shape of [
      { properties: { a: inner } },
      { additionalProperties: inner },
      { items: inner },
      { not: inner },
      { anyOf: [inner, { type: 'string' }] },
    ] as Json[]) {
      const [check, compiled] = [quickCheck(shape, FORMATS)!, ajv.compile(shape)]
      for (const value of [{}, { a: 1 }, { b: 1 }, [], [1], 'a', null]) {
        expect(check(value), `${JSON.stringify(shape)} of ${JSON.stringify(value)}`).toBe(compiled(value))
      }
    }
  }
})
