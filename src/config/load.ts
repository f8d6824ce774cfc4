import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { expectation, isValid } from './check.ts'
import { contradictions, type Given } from './contradictions.ts'
import { withFilesRead } from './item-secrets.ts'
import {
  type Assignment,
  type Layer,
  layerOfEnvironment,
  layerOfFile,
  layerOfFlags,
  layerOfValues,
  type Problem,
} from './layers.ts'
import { holdsSecrets, OPTION_BY_KEY, OPTIONS, type Option } from './options.ts'
import type { Config } from './schema.ts'

/** Later ones win: defaults, file, environment, flags, values. */
export interface ConfigSources {
  readonly file?: { readonly path: string; readonly text: string }
  readonly env?: Readonly<Record<string, string | undefined>>
  /** `key=value` */
  readonly flags?: readonly string[]
  readonly values?: object
  /** The base of relative paths outside the file. */
  readonly directory: string
}

export interface LoadedConfig {
  readonly config: Config
  /** The place of each value, by key; `default` if none was given. */
  readonly origins: ReadonlyMap<string, string>
}

/** All mistakes of a configuration, one line each: the place, the mistake, and the expected value. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ origin, message }) => `${origin}: ${message}`).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export function loadConfig(sources: ConfigSources): LoadedConfig {
  const problems: Problem[] = []
  const given = new Map<string, Given>()
  for (const [layer, base] of layersOf(sources)) {
    problems.push(...layer.problems, ...twiceGiven(layer))
    for (const assignment of layer.assignments) problems.push(...assign(given, assignment, base))
  }
  problems.push(...contradictions(given))
  if (problems.length > 0) throw new ConfigError(problems)
  return { config: build(given, sources.directory), origins: originsOf(given) }
}

function layersOf(sources: ConfigSources): [Layer, string][] {
  const { file, directory } = sources
  const layers: [Layer, string][] = [
    [layerOfEnvironment(sources.env ?? {}), directory],
    [layerOfFlags(sources.flags ?? []), directory],
    [layerOfValues(sources.values ?? {}), directory],
  ]
  if (file !== undefined) layers.unshift([layerOfFile(file.path, file.text), dirname(resolve(directory, file.path))])
  return layers
}

/** Problems for secrets that one layer gives both directly and as a file. */
function twiceGiven(layer: Layer): Problem[] {
  const keys = new Set(layer.assignments.map(({ option }) => option.key))
  return layer.assignments
    .filter(({ option }) => option.holds !== undefined && keys.has(option.holds))
    .map(({ option, origin }) => ({ origin, message: `give either ${option.holds} or ${option.key}, not both` }))
}

function assign(given: Map<string, Given>, { option, value, origin }: Assignment, base: string): Problem[] {
  if (!isValid(option.schema, value)) return [{ origin, message: mismatch(option, value) }]
  if (option.schema.path !== true) {
    const { found, problems } = withFilesRead(option.schema, value, base)
    given.set(option.key, { value: found, origin })
    return problems.map((message) => ({ origin, message: `${option.key}: ${message}` }))
  }
  const path = resolve(base, value as string)
  if (option.holds !== undefined) return assignFromFile(given, option.holds, path, origin)
  given.set(option.key, { value: path, origin })
  return []
}

function assignFromFile(given: Map<string, Given>, key: string, path: string, origin: string): Problem[] {
  const secret = OPTION_BY_KEY.get(key)!
  try {
    const value = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    if (!isValid(secret.schema, value)) return [{ origin, message: mismatch(secret, value) }]
    given.set(key, { value, origin: `${origin} (${path})` })
    return []
  } catch (error) {
    return [{ origin, message: `${path} cannot be read: ${(error as Error).message}` }]
  }
}

function mismatch(option: Option, value: unknown): string {
  const found = holdsSecrets(option.schema) ? 'something else' : JSON.stringify(value)
  return `${option.key}: expected ${expectation(option.schema)}, found ${found}`
}

function build(given: ReadonlyMap<string, Given>, directory: string): Config {
  const root: Record<string, unknown> = {}
  for (const { key, schema, holds } of OPTIONS) {
    const fallback =
      schema.path && schema.default !== undefined ? resolve(directory, String(schema.default)) : schema.default
    const value = given.get(key)?.value ?? fallback
    if (holds === undefined) place(root, key.split('.'), value)
  }
  return freeze(root) as unknown as Config
}

/** Sets a value in the tree. Creates the section even if the option has no value. */
function place(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  if (rest.length === 0) {
    if (value !== undefined) target[name] = value
  } else {
    target[name] ??= {}
    place(target[name] as Record<string, unknown>, rest, value)
  }
}

function freeze<T extends object>(value: T): T {
  for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) freeze(child)
  return Object.freeze(value)
}

function originsOf(given: ReadonlyMap<string, Given>): Map<string, string> {
  const shown = OPTIONS.filter(({ key, holds, schema }) => !holds && (given.has(key) || schema.default !== undefined))
  return new Map(shown.map(({ key }) => [key, given.get(key)?.origin ?? 'default']))
}
