import { type Filter, oneLine, readTemplate, type Template, TemplateError, type TemplateValues } from './template.ts'

/** A message made from a template, without its receiver. */
export interface RenderedMessage {
  readonly from: { readonly name: string; readonly address: string }
  readonly subject: string
  /** All other headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly html: string | undefined
}

export type MessageTemplate = (values: TemplateValues) => RenderedMessage

const HEADER = /^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)$/
const MARK = /^--- (text|html)$/
/** Headers with addresses in them, where a value is a name or an address and nothing else. */
const ADDRESSES = new Set(['from', 'reply-to', 'sender'])
/** Headers that the sender sets, so templates may not: the receiver, the date, and the encoding. */
const NOT_YOURS = /^(?:to|cc|bcc|date|message-id|mime-version|content-.*|return-path|received)$/
const FROM = /^(.*?)\s*<([^<>]*)>$/

interface Parts {
  readonly headers: Map<string, Template>
  text: Template | undefined
  html: Template | undefined
}

/**
 * Reads the template of a whole mail: headers, an empty line, then `--- text` and `--- html`, each followed by its part. `From` and
 * `Subject` and the text are needed.
 *
 * @throws TemplateError
 */
export function readMessageTemplate(source: string, names: readonly string[]): MessageTemplate {
  const lines = source.replaceAll('\r\n', '\n').split('\n')
  const parts: Parts = { headers: new Map(), text: undefined, html: undefined }
  const end = readHeaders(lines, names, parts)
  for (let at = end; at < lines.length; ) at = readPart(lines, at, names, parts)
  const { headers, text, html } = parts
  const from = headers.get('From')
  const subject = headers.get('Subject')
  if (from === undefined || subject === undefined)
    throw new TemplateError(1, 'a mail needs the headers From and Subject')
  if (text === undefined) throw new TemplateError(end + 1, 'a mail needs a part "--- text"')
  const others = [...headers].filter(([name]) => name !== 'From' && name !== 'Subject')
  return (values) => ({
    from: splitFrom(from(values)),
    subject: oneLine(subject(values)),
    headers: Object.fromEntries(others.map(([name, template]) => [name, oneLine(template(values))])),
    text: text(values),
    html: html?.(values),
  })
}

/** Gives the number of the first line after the headers. */
function readHeaders(lines: readonly string[], names: readonly string[], parts: Parts): number {
  let at = 0
  for (; at < lines.length && lines[at] !== ''; at++) {
    const [, name, value = ''] = HEADER.exec(lines[at] as string) ?? []
    if (name === undefined) throw new TemplateError(at + 1, 'expected a header, "Name: value", or an empty line')
    if (NOT_YOURS.test(name.toLowerCase())) throw new TemplateError(at + 1, `${name} is not for a template to set`)
    if (parts.headers.has(name)) throw new TemplateError(at + 1, `${name} stands there twice`)
    const filter: Filter = ADDRESSES.has(name.toLowerCase()) ? 'name' : 'header'
    parts.headers.set(name, readTemplate(value, names, filter, at + 1))
  }
  return at + 1
}

/** Gives the number of the first line after the part. */
function readPart(lines: readonly string[], start: number, names: readonly string[], parts: Parts): number {
  const [, kind] = MARK.exec(lines[start] as string) ?? []
  if (kind === undefined) {
    if (lines[start] === '') return start + 1
    throw new TemplateError(start + 1, 'expected "--- text" or "--- html"')
  }
  const next = lines.findIndex((line, at) => at > start && MARK.test(line))
  const end = next === -1 ? lines.length : next
  const body = `${lines
    .slice(start + 1, end)
    .join('\n')
    .trim()}\n`
  const offset = lines.findIndex((line, at) => at > start && line.trim() !== '')
  if (kind === 'html') parts.html = readTemplate(body, names, 'html', offset + 1)
  else parts.text = readTemplate(body, names, 'text', offset + 1)
  return end
}

function splitFrom(from: string): RenderedMessage['from'] {
  const [, name = '', address = from] = FROM.exec(from) ?? []
  return { name: name.trim(), address: address.trim() }
}
