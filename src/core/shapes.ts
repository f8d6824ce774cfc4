/**
 * Shapes of data: plain JSON schemas that carry the TypeScript type of what they accept. `Type.Object({ name: Type.String() })` is
 * both the schema `{ type: 'object', ... }` and, through `Static`, the type `{ name: string }`.
 */

declare const accepted: unique symbol
declare const optional: unique symbol

/** A JSON schema for values of the type `T`. The type exists for the compiler only. */
export interface Shape<T = unknown> {
  readonly [accepted]?: T
  readonly [keyword: string]: unknown
}

/** The shape of a key that may be absent. */
export interface OptionalShape<T = unknown> extends Shape<T> {
  readonly [optional]: true
}

/** The type of the values that a shape accepts. */
export type Static<S extends Shape> = S extends Shape<infer T> ? T : never

type Keys = Readonly<Record<string, Shape>>
type OptionalKeys<K extends Keys> = { [Name in keyof K]: K[Name] extends OptionalShape ? Name : never }[keyof K]
type Flat<T> = { [Name in keyof T]: T[Name] }

/** The type of an object with these keys. Other keys are allowed too, unless the shape forbids them. */
type ObjectOf<K extends Keys> = Flat<
  { [Name in Exclude<keyof K, OptionalKeys<K>>]: Static<K[Name]> } & {
    [Name in OptionalKeys<K>]?: Static<K[Name]>
  }
>

/** Further JSON schema keywords, such as `minimum` or `description`. */
type Keywords = Readonly<Record<string, unknown>>

const OPTIONAL: unique symbol = Symbol('optional')

const shape = <T>(keywords: Keywords): Shape<T> => keywords as Shape<T>

export const Type = {
  String: (keywords: Keywords = {}) => shape<string>({ type: 'string', ...keywords }),
  Integer: (keywords: Keywords = {}) => shape<number>({ type: 'integer', ...keywords }),
  Number: (keywords: Keywords = {}) => shape<number>({ type: 'number', ...keywords }),
  Boolean: (keywords: Keywords = {}) => shape<boolean>({ type: 'boolean', ...keywords }),
  Null: () => shape<null>({ type: 'null' }),
  Literal: <const Value extends string | number | boolean>(value: Value) => shape<Value>({ const: value }),
  /** Any of these. */
  Union: <S extends readonly Shape[]>(shapes: S) => shape<Static<S[number]>>({ anyOf: shapes }),
  Array: <S extends Shape>(items: S, keywords: Keywords = {}) =>
    shape<Static<S>[]>({ type: 'array', items, ...keywords }),
  /** Any schema for any type; nothing checks that they agree. */
  Unsafe: <T>(keywords: Keywords) => shape<T>(keywords),
  /** For the value of a key in `Object`. */
  Optional: <S extends Shape>(inner: S) => ({ ...inner, [OPTIONAL]: true }) as unknown as OptionalShape<Static<S>>,
  Object: <K extends Keys>(properties: K, keywords: Keywords = {}) => {
    const required = Object.keys(properties).filter((name) => !(OPTIONAL in (properties[name] as object)))
    return shape<ObjectOf<K>>({ type: 'object', properties, ...(required.length > 0 && { required }), ...keywords })
  },
}
