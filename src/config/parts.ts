import { type Shape, Type } from '../core/shapes.ts'

/** Builders for options. */

/** Nodes of a cluster may have different values. */
export const OF_NODE = { ofNode: true } as const

export const text = (description: string, options: Record<string, unknown> = {}) =>
  Type.String({ description, ...options })

export const integer = (
  description: string,
  fallback: number,
  minimum: number,
  maximum: number,
  options: Record<string, unknown> = {},
) => Type.Integer({ description, default: fallback, minimum, maximum, ...options })

export const flag = (description: string, fallback: boolean) => Type.Boolean({ description, default: fallback })

export const choice = <const Values extends readonly (string | boolean)[]>(
  description: string,
  values: Values,
  fallback: Values[number],
) => Type.Unsafe<Values[number]>({ description, enum: values, default: fallback })

export const section = <Keys extends Record<string, Shape>>(description: string, keys: Keys, options: object = {}) =>
  Type.Object(keys, { description, additionalProperties: false, ...options })

export const port = (description: string, fallback: number) => integer(description, fallback, 0, 65_535)
