/**
 * A small template language for messages and pages: `{{name}}` inserts a value, `{{name | filter}}` inserts it with that filter,
 * `{{#name}}...{{/name}}` keeps the text between if the value is not empty, `{{^name}}...{{/name}}` if it is empty. For a list, the text
 * between is repeated with the values of each item, which hide outer values of the same name. Every value goes through a filter: the one
 * that fits the place, unless the template names another.
 */

/** `html`: text or attribute. `json`: inside a JSON string. `header`: a header's value. `name`: a name before an address. `url`: a part of one. `localpart`: what is before an `@`. */
export type Filter = 'text' | 'html' | 'json' | 'header' | 'name' | 'url' | 'localpart'

export interface TemplateValues {
  readonly [name: string]: TemplateValue
}

/** A text, or a list of items with values of their own. */
export type TemplateValue = string | readonly TemplateValues[]

/** A parsed template. It renders values; missing ones are empty. */
export type Template = (values: TemplateValues) => string

/** A mistake in a template, with its line. */
export class TemplateError extends Error {
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.name = 'TemplateError'
    this.line = line
  }
}

/** Control characters, line and paragraph separators, and characters that change the direction of writing. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

const FILTERS: Readonly<Record<Filter, (value: string) => string>> = {
  text: (value) => value,
  html: escapeHtml,
  json: (value) => JSON.stringify(value).slice(1, -1).replaceAll('<', '\\u003c'),
  header: oneLine,
  name: (value) => oneLine(value.replace(/["<>\\,;()[\]]/g, ' ')),
  url: (value) => encodeURIComponent(Buffer.from(value).toString()),
  localpart: (value) => value.replace(/@.*$/s, ''),
}

const FILTER_NAMES: readonly Filter[] = ['text', 'html', 'json', 'header', 'name', 'url', 'localpart']

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** The text on one line, without characters that a mail system or a terminal would interpret. */
export function oneLine(text: string): string {
  return text.replace(UNPRINTABLE, ' ').replace(/ {2,}/g, ' ').trim()
}

type Node =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string; readonly filter: Filter }
  | { readonly kind: 'section'; readonly name: string; readonly whenEmpty: boolean; readonly children: Node[] }

interface Open {
  readonly name: string
  readonly line: number
  readonly children: Node[]
}

const TAG = /\{\{\s*([#^/]?)\s*([a-z][a-z0-9_]*)\s*(?:\|\s*([a-z]+)\s*)?\}\}/y

/** Further rules for a template. */
export interface TemplateRules {
  /** Values that are HTML already, and are inserted unchanged. */
  readonly markup?: readonly string[]
  /** The filters that it may use; all by default. */
  readonly filters?: readonly Filter[]
}

/**
 * Reads a template.
 *
 * @param names the values that it may use
 * @param filter for values that name none
 * @param firstLine the number of its first line in its file
 * @throws TemplateError
 */
export function readTemplate(
  text: string,
  names: readonly string[],
  filter: Filter,
  firstLine = 1,
  { markup = [], filters = FILTER_NAMES }: TemplateRules = {},
): Template {
  const root: Open = { name: '', line: firstLine, children: [] }
  const open: Open[] = [root]
  let line = firstLine
  let at = 0

  function tag(): void {
    TAG.lastIndex = at
    const match = TAG.exec(text)
    if (match === null) throw new TemplateError(line, 'after "{{" comes a name and "}}"')
    const [whole, sign, name = '', chosen] = match
    if (!names.includes(name)) throw new TemplateError(line, `there is no "${name}"; known are ${names.join(', ')}`)
    const known = filters.find((each) => each === chosen)
    if (chosen !== undefined && known === undefined) {
      throw new TemplateError(line, `there is no filter "${chosen}" here; known are ${filters.join(', ')}`)
    }
    at += whole.length
    if (sign === '/') close(name)
    else if (sign === '') add({ kind: 'value', name, filter: known ?? (markup.includes(name) ? 'text' : filter) })
    else {
      const children: Node[] = []
      add({ kind: 'section', name, whenEmpty: sign === '^', children })
      open.push({ name, line, children })
    }
  }

  function add(node: Node): void {
    open.at(-1)?.children.push(node)
  }

  function close(name: string): void {
    const closed = open.pop()
    if (closed === undefined || closed === root || closed.name !== name) {
      throw new TemplateError(line, `"{{/${name}}}" closes nothing that is open here`)
    }
  }

  while (at < text.length) {
    const next = text.indexOf('{{', at)
    const literal = text.slice(at, next === -1 ? undefined : next)
    if (literal !== '') add({ kind: 'literal', text: literal })
    line += literal.split('\n').length - 1
    if (next === -1) break
    at = next
    tag()
  }
  const unclosed = open.at(-1)
  if (unclosed !== undefined && unclosed !== root) {
    throw new TemplateError(unclosed.line, `"${unclosed.name}" is opened here and never closed`)
  }
  return (values) => render(root.children, values)
}

/** Whether the source of a template inserts this value, or has a section for it. */
export function holdsValue(source: string, name: string): boolean {
  return new RegExp(String.raw`\{\{\s*#?\s*${name}\s*[|}]`).test(source)
}

/** Reads a template of claims. It allows any name, because the claims of a provider are not known in advance. @throws TemplateError */
export function readClaimsTemplate(text: string): Template {
  const names = [...text.matchAll(/\{\{\s*[#^/]?\s*([a-z][a-z0-9_]*)/g)].map(([, name = '']) => name)
  return readTemplate(text, names, 'text')
}

function render(nodes: readonly Node[], values: TemplateValues): string {
  let out = ''
  for (const node of nodes) {
    if (node.kind === 'literal') out += node.text
    else {
      const value = (Object.hasOwn(values, node.name) ? values[node.name] : undefined) ?? ''
      if (node.kind === 'value') out += typeof value === 'string' ? FILTERS[node.filter](value) : ''
      else if ((value.length === 0) !== node.whenEmpty) continue
      else if (typeof value === 'string' || node.whenEmpty) out += render(node.children, values)
      else for (const item of value) out += render(node.children, { ...values, ...item })
    }
  }
  return out
}
