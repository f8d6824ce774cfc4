import { holdsValue, readTemplate, type Template, TemplateError, type TemplateValues } from './template.ts'

/** The rules for the template of a page. */
export interface PageRules {
  readonly values: readonly string[]
  /** The values that are HTML already. */
  readonly markup?: readonly string[]
  /** The values that are required. */
  readonly needs?: readonly string[]
  /** The fields of its form that a person fills in. */
  readonly fields?: readonly string[]
}

/** A page before its frame. Its words are text, its content is HTML. */
export interface PageWords {
  /** The language of the folder that the template is in. */
  readonly language: string
  readonly heading: string
  readonly subheading: string
  readonly footer: string
  readonly content: string
}

export type PageTemplate = (values: TemplateValues) => PageWords

/** The frame around every page. */
export interface PageFrame {
  readonly render: Template
  /** The texts of its style sheets, whose hashes go into the Content-Security-Policy. */
  readonly styles: readonly string[]
}

export const FRAME_RULES: PageRules = {
  values: ['language', 'brand', 'server_name', 'heading', 'subheading', 'content', 'footer'],
  markup: ['content'],
  needs: ['heading', 'content'],
}

const HEADERS = ['Heading', 'Subheading', 'Footer'] as const
const HEADER = /^([A-Za-z]+):[ \t]*(.*)$/
/** Up to the name of an attribute, past the quoted values of those before it. */
const TAG_START = `<[a-z][^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*`

/** Forbidden in every page: the Content-Security-Policy would block it, or a value could break out of its place. */
const FORBIDDEN: readonly (readonly [pattern: RegExp, problem: string])[] = [
  [/<script\b/i, 'a page holds no <script>: browsers are told to run none'],
  [/<(?:iframe|object|embed|base|link|meta\s+http-equiv)\b/i, 'a page loads nothing from elsewhere'],
  [/javascript:/i, 'a link leads to an address, not to a script'],
  [new RegExp(String.raw`${TAG_START}\son[a-z]+\s*=`, 'i'), 'an attribute that runs a script is not run'],
  [new RegExp(String.raw`${TAG_START}\s[\w-]+\s*=\s*\{\{`, 'i'), 'the value of an attribute stands in quotes'],
]
const STYLE = /<style\b[^>]*>([\s\S]*?)<\/style>/gi

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

function requireHarmless(text: string, firstLine: number): void {
  for (const [pattern, problem] of FORBIDDEN) {
    const found = pattern.exec(text)
    if (found !== null) throw new TemplateError(firstLine - 1 + lineAt(text, found.index), problem)
  }
}

function requireAll(source: string, { needs = [], fields = [] }: PageRules): void {
  for (const name of needs) {
    if (!holdsValue(source, name)) throw new TemplateError(1, `"{{${name}}}" must not be left out of it`)
  }
  for (const field of fields) {
    if (!new RegExp(String.raw`\sname\s*=\s*["']?${field}["'\s>]`).test(source))
      throw new TemplateError(1, `a field with name="${field}" must not be left out of it`)
  }
}

/**
 * Reads the template of a page: `Heading:`, and if it has them `Subheading:` and `Footer:`, then an empty line and HTML. The server
 * puts the frame around it.
 *
 * @throws TemplateError
 */
export function readPageTemplate(source: string, rules: PageRules, language: string): PageTemplate {
  const { values: names, markup = [] } = rules
  const text = source.replaceAll('\r\n', '\n')
  const lines = text.split('\n')
  const headers = new Map<string, Template>()
  let at = 0
  for (; at < lines.length && lines[at] !== ''; at++) {
    const [, name, value = ''] = HEADER.exec(lines[at] ?? '') ?? []
    const known = HEADERS.find((each) => each === name)
    if (known === undefined) throw new TemplateError(at + 1, `expected ${HEADERS.join(', ')} or an empty line`)
    if (headers.has(known)) throw new TemplateError(at + 1, `${known} stands there twice`)
    const plain = names.filter((each) => !markup.includes(each))
    headers.set(known, readTemplate(value, plain, 'header', at + 1, { filters: ['header'] }))
  }
  const heading = headers.get('Heading')
  if (heading === undefined) throw new TemplateError(1, 'a page needs the header Heading')
  const body = lines.slice(at + 1).join('\n')
  requireHarmless(body, at + 2)
  const style = body.search(/<style\b/i)
  if (style !== -1) throw new TemplateError(at + 1 + lineAt(body, style), 'a <style> belongs into frame.html')
  const content = readTemplate(body.trimEnd(), names, 'html', at + 2, { markup, filters: ['html', 'url'] })
  requireAll(text, rules)
  return (values) => ({
    language,
    heading: heading(values),
    subheading: headers.get('Subheading')?.(values) ?? '',
    footer: headers.get('Footer')?.(values) ?? '',
    content: content(values),
  })
}

/** Reads the template of the frame. @throws TemplateError */
export function readPageFrame(source: string): PageFrame {
  const text = source.replaceAll('\r\n', '\n')
  requireHarmless(text, 1)
  const styles = [...text.matchAll(STYLE)].map((found) => {
    const [whole, style = ''] = found
    // The Content-Security-Policy has the hash of the style, so the style must be the same for all pages.
    if (style.includes('{{')) {
      throw new TemplateError(lineAt(text, found.index + whole.indexOf('{{')), 'no values stand in a <style>')
    }
    return style
  })
  const { values, markup = [] } = FRAME_RULES
  const render = readTemplate(text, values, 'html', 1, { markup, filters: ['html', 'url'] })
  requireAll(text, FRAME_RULES)
  return { render, styles }
}
