import { expect, expectTypeOf, test } from 'vitest'
import { type Static, Type } from '../../src/core/shapes.ts'

const PERSON = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    age: Type.Optional(Type.Integer()),
    kind: Type.Union([Type.Literal('user'), Type.Literal('guest'), Type.Null()]),
    devices: Type.Array(Type.Object({ id: Type.String(), trusted: Type.Boolean() })),
    any: Type.Optional(Type.Object({})),
  },
  { additionalProperties: false },
)

test('a shape is a plain JSON schema', () => {
  expect(JSON.parse(JSON.stringify(PERSON))).toEqual({
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1 },
      age: { type: 'integer' },
      kind: { anyOf: [{ const: 'user' }, { const: 'guest' }, { type: 'null' }] },
      devices: {
        type: 'array',
        items: {
          type: 'object',
          properties: { id: { type: 'string' }, trusted: { type: 'boolean' } },
          required: ['id', 'trusted'],
        },
      },
      any: { type: 'object', properties: {} },
    },
    required: ['name', 'kind', 'devices'],
    additionalProperties: false,
  })
})

test('and carries the type of what it accepts', () => {
  expectTypeOf<Static<typeof PERSON>>().toEqualTypeOf<{
    name: string
    age?: number
    kind: 'user' | 'guest' | null
    devices: { id: string; trusted: boolean }[]
    any?: Record<never, never>
  }>()
})
