import { stringify } from 'yaml'
import { expectation } from './check.ts'
import { isHidden, withoutSecrets } from './item-secrets.ts'
import type { LoadedConfig } from './load.ts'
import { OPTION_BY_KEY, OPTIONS, type OptionSchema, ROOT, type Section } from './options.ts'
import { ConfigSchema } from './schema.ts'

const WIDTH = 110

/** The example file for operators: every option with its text and default, all commented out. */
export function exampleYaml(): string {
  const lead = [
    'Configuration of Hearth. Every line is optional: what is not set has the default shown here.',
    'Each key can also be given as an environment variable: listen.port is HEARTH__LISTEN__PORT.',
    'A secret can be read from a file: database.url_file, or HEARTH__DATABASE__URL_FILE.',
    '`hearth config check` says what is wrong with this file, `hearth config print` what the server makes of it.',
  ]
  return `${lead.map((line) => `# ${line}`).join('\n')}\n${sectionYaml(ROOT, '')}`
}

function sectionYaml(section: Section, indent: string): string {
  let out = ''
  for (const [name, child] of section.children) {
    if (child.kind === 'option' && child.holds !== undefined) continue
    const comment = wrap(child.schema.description ?? '', WIDTH - indent.length)
    if (child.kind === 'option' && child.schema.default === undefined) comment.push('Not set by default; an example:')
    out += `\n${comment.map((line) => `${indent}# ${line}\n`).join('')}${indent}#`
    if (child.kind === 'option') out += assignmentYaml(name, child.schema.default ?? child.schema.example)
    else if (child.schema.compact) out += assignmentYaml(name, defaultsOf(child))
    else out += `${name}:${sectionYaml(child, `${indent}  `)}`
  }
  return out
}

function defaultsOf(section: Section): object {
  return Object.fromEntries([...section.children].map(([name, child]) => [name, child.schema.default]))
}

function assignmentYaml(name: string, value: unknown): string {
  const yaml = stringify({ [name]: value }, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 })
  return `${yaml.trim().slice(1, -1)}\n`
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length >= width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** The schema for editors, which use it for completion and checks. */
export function jsonSchema(): string {
  const schema = withSecretFiles(JSON.parse(JSON.stringify(ConfigSchema)) as OptionSchema)
  const document = { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Hearth configuration', ...schema }
  return `${JSON.stringify(document, null, 2)}\n`
}

/** The schema of a section for editors: everything is optional, and our own keywords and formats are left out. */
function withSecretFiles(schema: OptionSchema): object {
  const { required, secret, hidden, path, compact, ofNode, format, example, properties, items, ...plain } = schema
  if (items !== undefined) return { ...plain, items: withSecretFiles(items) }
  if (properties === undefined) return example === undefined ? plain : { ...plain, examples: [example] }
  const entries = Object.entries(properties).flatMap(([name, child]): [string, object][] => {
    const own: [string, object] = [name, withSecretFiles(child)]
    const description = `File whose content is \`${name}\`.`
    return child.secret ? [own, [`${name}_file`, { type: 'string', description }]] : [own]
  })
  return { ...plain, properties: Object.fromEntries(entries) }
}

const HIDDEN_NOTE = ' Shown nowhere, as a secret may be in it.'

/** A Markdown table of all options. */
export function optionTable(): string {
  const rows = OPTIONS.filter(({ holds }) => holds === undefined).map(({ key, schema }) => {
    const secret = schema.secret ? ` Secret; also as \`${key}_file\`.` : schema.hidden ? HIDDEN_NOTE : ''
    const cells = [`\`${key}\``, defaultText(schema), expectation(schema), `${schema.description}${secret}`]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return ['| key | default | value | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function defaultText(schema: OptionSchema): string {
  const { default: fallback } = schema
  if (fallback === undefined) return 'none'
  return `\`${typeof fallback === 'string' ? fallback || "''" : JSON.stringify(fallback).replaceAll('"', '')}\``
}

/** The resulting configuration, without secrets; each line says where its value came from. */
export function printConfig({ config, origins }: LoadedConfig): string {
  const lines = [...origins].map(([key, origin]) => {
    const { schema } = OPTION_BY_KEY.get(key)!
    const shown = schema.secret ? '[hidden]' : JSON.stringify(withoutSecrets(schema, valueAt(config, key)))
    return { text: `${key}: ${shown}`, origin }
  })
  const width = Math.min(60, Math.max(...lines.map(({ text }) => text.length)))
  return lines.map(({ text, origin }) => `${text.padEnd(width)}  # ${origin}`).join('\n')
}

function valueAt(config: unknown, key: string): unknown {
  return key.split('.').reduce((value, name) => (value as Record<string, unknown>)[name], config)
}

/** A configuration file of what was set, from whatever place. Without secrets a comment says which are left out. */
export function settingsYaml({ config, origins }: LoadedConfig, withSecrets: boolean): string {
  const settings: Record<string, unknown> = {}
  const leftOut: string[] = []
  for (const [key, origin] of origins) {
    if (origin === 'default') continue
    const { schema } = OPTION_BY_KEY.get(key)!
    const value = valueAt(config, key)
    if (!withSecrets && (schema.secret || isHidden(schema, value))) leftOut.push(key)
    else setAt(settings, key.split('.'), withSecrets ? value : withoutSecrets(schema, value))
  }
  const note = leftOut.map((key) => `# ${key} is secret and was left out\n`).join('')
  return `${note}${stringify(settings, { lineWidth: 0 })}`
}

function setAt(settings: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) settings[name] = value
  else {
    const section = (settings[name] ?? {}) as Record<string, unknown>
    settings[name] = section
    setAt(section, rest, value)
  }
}

/** An option in force, for people who look at the server. */
export interface Setting {
  readonly key: string
  /** JSON, without secrets; undefined where nothing is set. */
  readonly value: string | undefined
  readonly isDefault: boolean
  readonly description: string
}

/** All options in force, in the order of the example file, without secrets. */
export function listSettings(config: object): Setting[] {
  return OPTIONS.filter(({ holds }) => holds === undefined).map(({ key, schema }) => {
    const value = valueAt(config, key)
    const shown = schema.secret && value !== undefined ? '[hidden]' : withoutSecrets(schema, value)
    return {
      key,
      value: value === undefined ? undefined : JSON.stringify(shown),
      isDefault: JSON.stringify(value) === JSON.stringify(schema.default),
      description: schema.description ?? '',
    }
  })
}
