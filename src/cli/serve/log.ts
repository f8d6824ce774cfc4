import { type DestinationStream, destination, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from '../../config/schema.ts'
import { readableLine } from '../readable-line.ts'
import { createLogSampling, type LogSampling } from './log-sampling.ts'
import { createRecentErrors, type RecentErrors } from './recent-errors.ts'

/** Keys whose values never reach a log, at the top of a line's object or one level down. */
const SECRET_KEYS = [
  'password',
  'new_password',
  'token',
  'access_token',
  'refresh_token',
  'login_token',
  'client_secret',
  'code_verifier',
  'device_code',
  'user_code',
  'authorization',
  'cookie',
  'auth',
]
const REDACTED_PATHS = SECRET_KEYS.flatMap((key) => [key, `*.${key}`])

/** The log of a running server, and what it remembers of its lines. */
export interface ServerLog {
  readonly log: Logger
  readonly sampling: LogSampling
  readonly recent: RecentErrors
}

/** Like `createLog`; of equal warnings and errors it writes one a minute, and the newest are remembered. Lines of a node bear its number. */
export function createServerLog(
  options: Config['log'],
  isTerminal: boolean,
  parts: { readonly output?: DestinationStream; readonly node?: number | undefined } = {},
): ServerLog {
  const { output, node } = parts
  const sampling = createLogSampling()
  const recent = createRecentErrors()
  const stream = output ?? standardOutput(options, isTerminal)
  const write = writerOf(options, isTerminal, stream)
  const remembering = {
    write(line: string) {
      recent.add(line)
      write(line)
    },
    // The last line before a crash must not stay in a buffer.
    flushSync: () => (stream as { flushSync?(): void }).flushSync?.(),
  }
  const base = node === undefined ? null : { node }
  const settings = { ...settingsOf(options, isTerminal), base, hooks: { logMethod: sampling.logMethod } }
  return { log: pino(settings, remembering), sampling, recent }
}

/** A log, on standard output: JSON, or lines for people. Paths are logged without their query strings, where tokens may be. */
export function createLog(options: Config['log'], isTerminal: boolean, output?: DestinationStream): Logger {
  const stream = output ?? standardOutput(options, isTerminal)
  const settings = settingsOf(options, isTerminal)
  if (!isForPeople(options, isTerminal)) return pino(settings, stream)
  return pino(settings, { write: writerOf(options, isTerminal, stream) })
}

function settingsOf(options: Config['log'], isTerminal: boolean): LoggerOptions {
  const isReadable = isForPeople(options, isTerminal)
  return {
    level: options.level,
    base: null,
    timestamp: isReadable ? () => `,"time":${Date.now()}` : () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (level: string) => ({ level }) },
    redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    serializers: { url: withoutQuery, path: withoutQuery },
  }
}

function writerOf(options: Config['log'], isTerminal: boolean, stream: DestinationStream): (line: string) => void {
  if (!isForPeople(options, isTerminal)) return (line) => stream.write(line)
  return (line) => stream.write(readableLine(line, isTerminal))
}

function isForPeople({ format }: Config['log'], isTerminal: boolean): boolean {
  return format === 'pretty' || (format === 'auto' && isTerminal)
}

function standardOutput(options: Config['log'], isTerminal: boolean): DestinationStream {
  return destination({ dest: 1, sync: isForPeople(options, isTerminal) })
}

function withoutQuery(value: unknown): unknown {
  return typeof value === 'string' ? value.split('?', 1)[0] : value
}
