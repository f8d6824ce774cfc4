import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, type ConfigSources, type LoadedConfig, loadConfig } from '../config/load.ts'

/** What a command knows of the process it runs in; made by main.ts. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly directory: string
  readonly uid: number
  readonly isTerminal: boolean
  readonly version: string
  readonly nodeVersion: string
  /** How this program is called: `hearth`, or `node dist/main.js`. */
  readonly program: string
  /** Bytes of this process that are in memory. */
  residentBytes(): number
  print(text: string): void
  complain(text: string): void
  /** Asks on the terminal without showing what is typed. */
  askSecret(question: string): Promise<string>
  /** Aborted by the first SIGTERM or SIGINT; until it is asked for, these end the process at once. */
  stopSignal(): AbortSignal
  /** What is to be done on SIGHUP, which until then ends the process. */
  onReload(reload: () => void): void
  /** What is to be done about an error that nobody caught, before the process ends. */
  onCrash(report: (error: unknown) => void): void
}

export interface Options {
  readonly config?: string
  readonly set?: readonly string[]
}

export interface Command {
  /** What follows the name, and a line on each option of its own. */
  readonly usage: string
  /** Gives an exit code. Throws UsageError when the words make no sense. */
  run(host: Host, words: readonly string[]): Promise<number>
}

/** How the process ends; 78 is what service managers know as a configuration error, which no restart cures. */
export const EXIT = { ok: 0, failure: 1, usage: 2, config: 78 } as const

export const EXIT_MEANINGS: Readonly<Record<number, string>> = {
  [EXIT.ok]: 'done, or stopped as asked',
  [EXIT.failure]: 'something failed; standard error says what',
  [EXIT.usage]: 'the command line makes no sense',
  [EXIT.config]: 'the configuration is wrong; each problem is named with its file and line',
}

export class UsageError extends Error {}

const DEFAULT_FILE = 'hearth.yaml'

/** The parseArgs options that every command reading the configuration has. */
export const CONFIG_OPTIONS = {
  config: { type: 'string' },
  set: { type: 'string', multiple: true },
} as const

/** The configuration file in use: the one named, else `hearth.yaml` in the working directory if it is there. */
export function configFile(host: Host, options: Options): string | undefined {
  const named = options.config ?? host.env.HEARTH_CONFIG
  if (named !== undefined && named !== '') return resolve(host.directory, named)
  const usual = resolve(host.directory, DEFAULT_FILE)
  return existsSync(usual) ? usual : undefined
}

export function readConfig(host: Host, options: Options): LoadedConfig {
  const path = configFile(host, options)
  const sources: ConfigSources = { env: host.env, flags: options.set ?? [], directory: host.directory }
  if (path === undefined) return loadConfig(sources)
  try {
    return loadConfig({ ...sources, file: { path, text: readFileSync(path, 'utf8') } })
  } catch (error) {
    if (error instanceof ConfigError || (error as NodeJS.ErrnoException).code === undefined) throw error
    throw new ConfigError([{ origin: path, message: (error as Error).message }])
  }
}
