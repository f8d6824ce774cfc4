import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type OptionSchema, secretInFile } from './options.ts'

interface Found {
  readonly found: unknown
  readonly problems: readonly string[]
}

/** Replaces keys that name files by the content of the files, and resolves paths, in the items of a list. */
export function withFilesRead(schema: OptionSchema, value: unknown, base: string): Found {
  if (Array.isArray(value)) {
    const items = value.map((item) => withFilesRead(schema.items ?? {}, item, base))
    return { found: items.map(({ found }) => found), problems: items.flatMap(({ problems }) => problems) }
  }
  if (schema.path && typeof value === 'string') return { found: resolve(base, value), problems: [] }
  if (schema.properties === undefined || typeof value !== 'object' || value === null)
    return { found: value, problems: [] }
  const problems: string[] = []
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
    const secret = secretInFile(schema, name)
    if (secret === undefined) return [name, item]
    if (Object.hasOwn(value, secret)) problems.push(`give either ${secret} or ${name}, not both`)
    return [secret, contentOf(resolve(base, item as string), problems)]
  })
  return { found: Object.fromEntries(entries), problems }
}

function contentOf(path: string, problems: string[]): string {
  try {
    const content = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    if (content === '') problems.push(`${path} is empty`)
    return content
  } catch (error) {
    problems.push(`${path} cannot be read: ${(error as Error).message}`)
    return ''
  }
}

/** Whether an option that is not secret itself may hold one in this value. The default value holds none. */
export function isHidden(schema: OptionSchema, value: unknown): boolean {
  return schema.hidden === true && JSON.stringify(value) !== JSON.stringify(schema.default)
}

/** The value without secrets, for display. */
export function withoutSecrets(schema: OptionSchema, value: unknown): unknown {
  if (schema.secret || isHidden(schema, value)) return '[hidden]'
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(schema.items ?? {}, item))
  if (schema.properties === undefined || typeof value !== 'object' || value === null) return value
  const { properties } = schema
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, withoutSecrets(properties[name] ?? {}, item)]),
  )
}
