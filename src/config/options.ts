import { ConfigSchema } from './schema.ts'

/** The JSON schema keywords that this configuration uses, and its own. */
export interface OptionSchema {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly (string | boolean)[]
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly pattern?: string
  readonly format?: string
  readonly items?: OptionSchema
  readonly properties?: Readonly<Record<string, OptionSchema>>
  readonly required?: readonly string[]
  readonly secret?: boolean
  /** A text in which an operator may have written a secret: unless it is the default, it is shown nowhere. */
  readonly hidden?: boolean
  readonly path?: boolean
  readonly compact?: boolean
  /** What concerns one process or its machine: nodes of a cluster may have different values. All else they share. */
  readonly ofNode?: boolean
  readonly example?: unknown
}

export interface Section {
  readonly kind: 'section'
  readonly key: string
  readonly schema: OptionSchema
  readonly children: ReadonlyMap<string, Section | Option>
}

export interface Option {
  readonly kind: 'option'
  /** `registration.token` */
  readonly key: string
  /** `HEARTH__REGISTRATION__TOKEN` */
  readonly env: string
  readonly schema: OptionSchema
  /** Set on `registration.token_file`: the key whose value the named file holds. */
  readonly holds?: string
  /** Whether it, or a section that it is in, is of one node. */
  readonly isOfNode: boolean
}

const FILE_SUFFIX = '_file'

/** The tree of every section and option, `<secret>_file` keys included. */
export const ROOT: Section = sectionOf('', ConfigSchema as unknown as OptionSchema)

function sectionOf(key: string, schema: OptionSchema, isInNode = false): Section {
  const children = new Map<string, Section | Option>()
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const childKey = key === '' ? name : `${key}.${name}`
    const isOfNode = isInNode || child.ofNode === true
    if (child.type === 'object') {
      children.set(name, sectionOf(childKey, child, isOfNode))
      continue
    }
    children.set(name, { kind: 'option', key: childKey, env: envName(childKey), schema: child, isOfNode })
    if (child.secret) children.set(name + FILE_SUFFIX, fileOption(childKey))
  }
  return { kind: 'section', key, schema, children }
}

function fileOption(secret: string): Option {
  const key = secret + FILE_SUFFIX
  const description = `File whose content is \`${secret}\`.`
  const schema = { type: 'string', description, path: true, minLength: 1, example: `/run/secrets/${key}` }
  return { kind: 'option', key, env: envName(key), schema, holds: secret, isOfNode: true }
}

/** The secret that a key of a list's item names a file for: `client_secret` for `client_secret_file`. */
export function secretInFile({ properties = {} }: OptionSchema, name: string): string | undefined {
  if (!name.endsWith(FILE_SUFFIX)) return undefined
  const secret = name.slice(0, -FILE_SUFFIX.length)
  return Object.hasOwn(properties, secret) && properties[secret]?.secret ? secret : undefined
}

/** Whether values of this option contain secrets, at any depth. */
export function holdsSecrets({ secret, hidden, items, properties = {} }: OptionSchema): boolean {
  return (
    secret === true ||
    hidden === true ||
    (items !== undefined && holdsSecrets(items)) ||
    Object.values(properties).some(holdsSecrets)
  )
}

function envName(key: string): string {
  return `HEARTH__${key.toUpperCase().replaceAll('.', '__')}`
}

function optionsIn(section: Section): Option[] {
  return [...section.children.values()].flatMap((child) => (child.kind === 'option' ? [child] : optionsIn(child)))
}

export const OPTIONS: readonly Option[] = optionsIn(ROOT)
export const OPTION_BY_KEY: ReadonlyMap<string, Option> = new Map(OPTIONS.map((option) => [option.key, option]))
export const OPTION_BY_ENV: ReadonlyMap<string, Option> = new Map(OPTIONS.map((option) => [option.env, option]))
