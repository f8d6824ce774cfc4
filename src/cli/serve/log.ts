import { type DestinationStream, destination, type Logger, pino } from 'pino'
import type { Config } from '../../config/schema.ts'
import { readableLine } from '../readable-line.ts'

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

/** The server's log, on standard output: JSON, or lines for people. Paths are logged without their query strings, where tokens may be. */
export function createLog(options: Config['log'], isTerminal: boolean, output?: DestinationStream): Logger {
  const isReadable = options.format === 'pretty' || (options.format === 'auto' && isTerminal)
  const stream = output ?? destination({ dest: 1, sync: isReadable })
  const settings = {
    level: options.level,
    base: null,
    timestamp: isReadable ? () => `,"time":${Date.now()}` : () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (level: string) => ({ level }) },
    redact: { paths: REDACTED_PATHS, censor: '[redacted]' },
    serializers: { url: withoutQuery, path: withoutQuery },
  }
  return pino(settings, isReadable ? { write: (line) => stream.write(readableLine(line, isTerminal)) } : stream)
}

function withoutQuery(value: unknown): unknown {
  return typeof value === 'string' ? value.split('?', 1)[0] : value
}
