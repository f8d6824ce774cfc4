import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, type ConfigSources, type LoadedConfig, loadConfig } from '../config/load.ts'

/** A command's access to its process; made by main.ts. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly directory: string
  readonly uid: number
  readonly isTerminal: boolean
  readonly version: string
  readonly nodeVersion: string
  /** The words that start this program: `hearth`, or `node dist/main.js`. */
  readonly program: string
  /** Resident memory of this process, in bytes. */
  residentBytes(): number
  /** Memory that all processes here may have together, in bytes: that of the machine, or of the container. */
  memoryBytes(): number
  print(text: string): void
  complain(text: string): void
  /** Writes to standard error as it is, without ending the line. */
  draw(text: string): void
  /** Runs this program again, as a process that gives way to others; its end is that of the signal. */
  runBeside(words: readonly string[], signal: AbortSignal): Promise<ChildOutcome>
  /** From now on this process, or a Postgres backend of this machine, has the processor only when others do not want it. */
  giveWay(backend?: number): void
  /** Asks on the terminal, without echo. */
  askSecret(question: string): Promise<string>
  /** Aborted by the first SIGTERM or SIGINT. Before the first call of this function, these end the process at once. */
  stopSignal(): AbortSignal
  /** Sets the action on SIGHUP, which ends the process otherwise. */
  onReload(reload: () => void): void
  /** Sets the action on SIGUSR2, which ends the process otherwise. */
  onRestart(restart: () => void): void
  /** Sets the action on an uncaught error, before the process ends. */
  onCrash(report: (error: unknown) => void): void
}

/** How a process ended that this one began. */
export interface ChildOutcome {
  readonly code: number | null
  /** What it printed, its end. */
  readonly output: string
}

export interface Options {
  readonly config?: string
  readonly set?: readonly string[]
}

export interface Command {
  /** The usage after the command's name, and a line for each of its options. */
  readonly usage: string
  /** Gives an exit code. Throws UsageError if the words are not valid. */
  run(host: Host, words: readonly string[]): Promise<number>
}

/** Exit codes. Service managers know 78 as a configuration error, which a restart does not fix. */
export const EXIT = { ok: 0, failure: 1, usage: 2, config: 78 } as const

export const EXIT_MEANINGS: Readonly<Record<number, string>> = {
  [EXIT.ok]: 'done, or stopped as asked',
  [EXIT.failure]: 'something failed; standard error says what',
  [EXIT.usage]: 'the command line makes no sense',
  [EXIT.config]: 'the configuration is wrong; each problem is named with its file and line',
}

export class UsageError extends Error {}

const DEFAULT_FILE = 'hearth.yaml'

/** The parseArgs options of every command that reads the configuration. */
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
