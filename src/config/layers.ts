import { isMap, isPair, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from 'yaml'
import { fromText } from './check.ts'
import { OPTION_BY_ENV, OPTION_BY_KEY, OPTIONS, type Option, type OptionSchema, ROOT, type Section } from './options.ts'
import { nearest, nearestKey } from './suggest.ts'

/** One given value, and its place. */
export interface Assignment {
  readonly option: Option
  readonly value: unknown
  /** `hearth.yaml:12`, `HEARTH__LISTEN__PORT`, `--set listen.port` */
  readonly origin: string
}

export interface Problem {
  readonly origin: string
  readonly message: string
}

export interface Layer {
  readonly assignments: readonly Assignment[]
  readonly problems: readonly Problem[]
}

const ALL_KEYS = OPTIONS.map(({ key }) => key)

export function layerOfFile(path: string, text: string): Layer {
  const assignments: Assignment[] = []
  const problems: Problem[] = []
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number | undefined) => `${path}:${lines.linePos(offset ?? 0).line}`
  for (const error of document.errors) problems.push({ origin: at(error.pos[0]), message: error.message })
  if (problems.length === 0 && document.contents !== null) visit(ROOT, document.contents as ParsedNode)
  return { assignments, problems }

  function visit(section: Section, node: ParsedNode): void {
    if (isScalar(node) && node.value === null) return
    if (!isMap(node)) {
      const name = section.key === '' ? 'the file' : section.key
      problems.push({ origin: at(node.range[0]), message: `${name} holds keys with values, one per line` })
      return
    }
    for (const pair of node.items) if (isPair(pair)) visitPair(section, pair.key, pair.value)
  }

  function visitPair(section: Section, keyNode: ParsedNode, valueNode: ParsedNode | null): void {
    const name = String(isScalar(keyNode) ? keyNode.value : keyNode)
    const origin = at(keyNode.range[0])
    const child = section.children.get(name)
    if (child === undefined) problems.push({ origin, message: unknownKey(section, name) })
    else if (child.kind === 'section') valueNode === null || visit(child, valueNode)
    else if (valueNode !== null && !(isScalar(valueNode) && valueNode.value === null)) {
      assignments.push({ option: child, value: plainValue(child.schema, valueNode), origin })
    }
  }
}

const isSwitch = ({ type, enum: values }: OptionSchema): boolean =>
  type === 'boolean' || values?.includes(true) === true

/** The value of a YAML node. Text options use the source text, so that a version 1.10 does not become 1.1; switches may be quoted. */
function plainValue(schema: OptionSchema, node: ParsedNode): unknown {
  const wantsText = schema.type === 'string' || schema.enum?.every((value) => typeof value === 'string')
  if (isScalar(node) && wantsText && typeof node.value !== 'string') return node.source
  if (isScalar(node) && typeof node.value === 'string' && isSwitch(schema)) return fromText(schema, node.value)
  if (isSeq(node) && schema.items !== undefined) {
    return node.items.map((item) => plainValue(schema.items ?? {}, item as ParsedNode))
  }
  if (isMap(node) && schema.properties !== undefined) {
    const { properties } = schema
    return Object.fromEntries(
      node.items.map(({ key, value }) => {
        const name = String(isScalar(key) ? key.value : key)
        return [name, value === null ? null : plainValue(properties[name] ?? {}, value as ParsedNode)]
      }),
    )
  }
  return node.toJSON()
}

export function layerOfEnvironment(env: Readonly<Record<string, string | undefined>>): Layer {
  const assignments: Assignment[] = []
  const problems: Problem[] = []
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('HEARTH__') || text === undefined || text === '') continue
    const option = OPTION_BY_ENV.get(name)
    if (option !== undefined) assignments.push({ option, value: fromText(option.schema, text), origin: name })
    else problems.push({ origin: name, message: `unknown variable${hint(nearest(name, OPTION_BY_ENV.keys()))}` })
  }
  return { assignments, problems }
}

/** `settings` are of the form `listen.port=8009`. */
export function layerOfFlags(settings: readonly string[]): Layer {
  const assignments: Assignment[] = []
  const problems: Problem[] = []
  for (const setting of settings) {
    const [, key = setting, text] = /^([^=]*)=(.*)$/s.exec(setting) ?? []
    const option = OPTION_BY_KEY.get(key)
    const origin = `--set ${key}`
    if (text === undefined) problems.push({ origin, message: 'expected key=value' })
    else if (option !== undefined) assignments.push({ option, value: fromText(option.schema, text), origin })
    else problems.push({ origin, message: `unknown key "${key}"${hint(nearestKey(key, ALL_KEYS))}` })
  }
  return { assignments, problems }
}

/** Values from a program, such as a test. */
export function layerOfValues(values: object, section: Section = ROOT): Layer {
  const assignments: Assignment[] = []
  const problems: Problem[] = []
  for (const [name, value] of Object.entries(values)) {
    const child = section.children.get(name)
    const origin = 'the caller'
    if (child === undefined) problems.push({ origin, message: unknownKey(section, name) })
    else if (child.kind === 'option') value === undefined || assignments.push({ option: child, value, origin })
    else {
      const inner = layerOfValues(value as object, child)
      assignments.push(...inner.assignments)
      problems.push(...inner.problems)
    }
  }
  return { assignments, problems }
}

function unknownKey(section: Section, name: string): string {
  const prefix = section.key === '' ? '' : `${section.key}.`
  const sibling = nearest(name, section.children.keys())
  const meant = sibling === undefined ? nearestKey(prefix + name, ALL_KEYS) : prefix + sibling
  return `unknown key "${prefix}${name}"${hint(meant)}`
}

function hint(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}
