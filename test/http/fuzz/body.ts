import type { Shape } from '../../../src/core/shapes.ts'

/** A body before it is written: leaves are JSON texts, so that what no parsed value shows (`1.0`, repeated keys) can be sent. */
export type Node = string | Node[] | Map<string, Node>

export function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return value.map(nodeOf)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return new Map(Object.entries(value).map(([key, inner]) => [key, nodeOf(inner)]))
}

export function textOf(node: Node): string {
  if (typeof node === 'string') return node
  if (Array.isArray(node)) return `[${node.map(textOf).join()}]`
  return `{${[...node].map(([key, inner]) => `${JSON.stringify(key)}:${textOf(inner)}`).join()}}`
}

/** The way to a value inside a body: keys and indexes. */
export type Pointer = readonly (string | number)[]

/** Every value inside a body, and every key that its schema declares. */
export function pointersOf(node: Node, schema: SchemaNode | undefined, here: Pointer = []): Pointer[] {
  const declared = Object.keys(schema?.properties ?? {})
  if (typeof node === 'string') return []
  const inner = Array.isArray(node) ? [...node.entries()] : [...node.entries()]
  const names = new Set<string | number>([...inner.map(([name]) => name), ...declared])
  return [...names].flatMap((name) => {
    const below = new Map<string | number, Node>(inner).get(name)
    const described = typeof name === 'number' ? schema?.items : schema?.properties?.[name]
    const pointer = [...here, name]
    return [pointer, ...(below === undefined ? [] : pointersOf(below, described, pointer))]
  })
}

/** Puts a text where the pointer leads, or takes away what is there. Tells whether there was a way. */
export function put(root: Node, pointer: Pointer, text: string | undefined): boolean {
  let node: Node | undefined = root
  for (const step of pointer.slice(0, -1)) node = childOf(node, step)
  const last = pointer.at(-1)
  if (node instanceof Map && typeof last === 'string') {
    if (text === undefined) node.delete(last)
    else node.set(last, text)
    return true
  } else if (Array.isArray(node) && typeof last === 'number') {
    node.splice(last, 1, ...(text === undefined ? [] : [text]))
    return true
  }
  return false
}

function childOf(node: Node | undefined, step: string | number): Node | undefined {
  if (node instanceof Map && typeof step === 'string') return node.get(step)
  return Array.isArray(node) && typeof step === 'number' ? node[step] : undefined
}

/** What this test reads of a schema. */
export interface SchemaNode {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly SchemaNode[]
  readonly items?: SchemaNode
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, SchemaNode>>
}

export const schemaOf = (shape: Shape | undefined): SchemaNode | undefined => shape as SchemaNode | undefined

export function schemaAt(schema: SchemaNode | undefined, pointer: Pointer): SchemaNode | undefined {
  return pointer.reduce<SchemaNode | undefined>(
    (node, step) => (typeof step === 'number' ? node?.items : node?.properties?.[step]),
    schema,
  )
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

/** Whether a value is of a type that the schema does not know here. Undeclared keys may be anything. */
export function isWrongType(schema: SchemaNode | undefined, text: string): boolean {
  const types = typesOf(schema)
  if (types === undefined) return false
  return !types.has(typeOf(JSON.parse(text)).replace('number', text.includes('.') ? 'float' : 'number'))
}

function typesOf(schema: SchemaNode | undefined): Set<string> | undefined {
  if (schema === undefined) return undefined
  if (schema.anyOf) {
    const kinds = schema.anyOf.map(typesOf)
    return kinds.some((kind) => kind === undefined) ? undefined : new Set(kinds.flatMap((kind) => [...kind!]))
  }
  if ('const' in schema) return new Set([typeOf(schema.const)])
  if (schema.type === undefined) return undefined
  if (schema.type === 'number') return new Set(['number', 'float'])
  return new Set([schema.type === 'integer' ? 'number' : schema.type])
}
