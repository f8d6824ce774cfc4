import type { Level, LogFn, Logger } from 'pino'

const MINUTE_MS = 60_000
/** Kinds of lines that are remembered; with more, the oldest is written as if it had not come before. */
const MAX_KINDS = 500
const WARN = 40
const FATAL = 60

/** Writes the first of equal warnings and errors at once, and then once a minute how many more there were. */
export interface LogSampling {
  /** For `hooks.logMethod` of pino. */
  logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn, level: number): void
  /** Lines since the start, those that were left out included. */
  readonly counts: Readonly<Record<'warn' | 'error' | 'fatal', number>>
  /** Writes now what would be written within the minute. */
  flush(): void
}

interface Kind {
  readonly tell: (times: number) => void
  until: number
  left: number
  timer: NodeJS.Timeout | undefined
}

export function createLogSampling(now: () => number = () => performance.now()): LogSampling {
  const kinds = new Map<string, Kind>()
  const counts = { warn: 0, error: 0, fatal: 0 }

  function tell(kind: Kind): void {
    clearTimeout(kind.timer)
    kind.timer = undefined
    if (kind.left === 0) return
    const times = kind.left
    kind.left = 0
    kind.until = now() + MINUTE_MS
    kind.tell(times)
  }

  /** Whether a line is written; if not, it is counted. */
  function isFirst(key: string, write: (times: number) => void): boolean {
    const known = kinds.get(key)
    if (known !== undefined && known.until > now()) {
      known.left++
      known.timer ??= setTimeout(() => tell(known), known.until - now()).unref()
      return false
    }
    if (known !== undefined) tell(known)
    kinds.delete(key)
    if (kinds.size >= MAX_KINDS) forgetOldest()
    kinds.set(key, { tell: write, until: now() + MINUTE_MS, left: 0, timer: undefined })
    return true
  }

  function forgetOldest(): void {
    const [oldest] = kinds
    if (oldest === undefined) return
    tell(oldest[1])
    kinds.delete(oldest[0])
  }

  return {
    counts,
    logMethod(args, method, level) {
      if (level < WARN) return method.apply(this, args)
      counts[nameOf(level)]++
      const { key, text } = kindOf(args, level)
      if (level >= FATAL || isFirst(key, (times) => method.apply(this, [{ repeated: times }, text])))
        method.apply(this, args)
    },
    flush() {
      for (const kind of kinds.values()) tell(kind)
    },
  }
}

const nameOf = (level: number): 'warn' | 'error' | ('fatal' & Level) =>
  level >= FATAL ? 'fatal' : level > WARN ? 'error' : 'warn'

/** Lines are equal if they say the same of an error of the same kind from the same place, whatever the ids beside it. */
function kindOf([first, second]: readonly unknown[], level: number): { key: string; text: string } {
  const text = typeof first === 'string' ? first : String(second ?? '')
  const err = typeof first === 'object' && first !== null ? ((first as { err?: unknown }).err ?? first) : undefined
  if (!(err instanceof Error)) return { key: `${level} ${text}`, text }
  const { code } = err as { code?: unknown }
  const place = /^\s+at .*$/m.exec(err.stack ?? '')?.[0].trim()
  return { key: `${level} ${text} ${err.name} ${String(code ?? '')} ${place ?? ''}`, text: text || err.name }
}
