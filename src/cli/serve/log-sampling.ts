import type { Level, LogFn, Logger } from 'pino'

const MINUTE_MS = 60_000
/** Kinds of lines that are remembered; with more, the oldest is written as if it had not come before. */
const MAX_KINDS = 500
/** Whom or what a line is about, if it says so. Ids of requests and events are none: each line has another one. */
const SUBJECTS = ['user', 'user_id', 'room', 'roomId', 'server', 'origin', 'appservice', 'pusher'] as const
/** Of one text, lines about so many different ones are told apart within a minute. All others count as one kind: others choose names. */
const MAX_SUBJECTS = 20
const MAX_SUBJECT_LETTERS = 300
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

type Subject = Readonly<Record<string, string | number>>

interface Kind {
  readonly tell: (times: number) => void
  until: number
  left: number
  timer: NodeJS.Timeout | undefined
}

export function createLogSampling(now: () => number = () => performance.now()): LogSampling {
  const kinds = new Map<string, Kind>()
  /** The subjects of a text in this minute. */
  const subjects = new Map<string, { readonly until: number; readonly known: Set<string> }>()
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

  /** The kind of a line: that of its text, or of its text about one subject. */
  function keyFor(key: string, subject: string): string {
    let found = subjects.get(key)
    if (found === undefined || found.until <= now()) {
      subjects.delete(key)
      const [oldest] = subjects.keys()
      if (oldest !== undefined && subjects.size >= MAX_KINDS) subjects.delete(oldest)
      found = { until: now() + MINUTE_MS, known: new Set() }
      subjects.set(key, found)
    }
    if (!found.known.has(subject) && found.known.size >= MAX_SUBJECTS) return key
    found.known.add(subject)
    return `${key} ${subject}`
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
      if (level >= FATAL) return method.apply(this, args)
      const { key, text } = kindOf(args, level)
      const subject = subjectOf(args[0])
      const own = subject === undefined ? key : keyFor(key, JSON.stringify(subject).slice(0, MAX_SUBJECT_LETTERS))
      const named = own === key ? {} : subject
      if (isFirst(own, (times) => method.apply(this, [{ ...named, repeated: times }, text]))) method.apply(this, args)
    },
    flush() {
      for (const kind of kinds.values()) tell(kind)
    },
  }
}

const nameOf = (level: number): 'warn' | 'error' | ('fatal' & Level) =>
  level >= FATAL ? 'fatal' : level > WARN ? 'error' : 'warn'

function subjectOf(facts: unknown): Subject | undefined {
  if (typeof facts !== 'object' || facts === null || facts instanceof Error) return undefined
  const found: Record<string, string | number> = {}
  for (const name of SUBJECTS) {
    const value = (facts as Record<string, unknown>)[name]
    if (typeof value === 'string' || typeof value === 'number') found[name] = value
  }
  return Object.keys(found).length === 0 ? undefined : found
}

/** Lines are equal if they say the same of an error of the same kind from the same place, and name the same subject. */
function kindOf([first, second]: readonly unknown[], level: number): { key: string; text: string } {
  const text = typeof first === 'string' ? first : String(second ?? '')
  const err = typeof first === 'object' && first !== null ? ((first as { err?: unknown }).err ?? first) : undefined
  if (!(err instanceof Error)) return { key: `${level} ${text}`, text }
  const { code } = err as { code?: unknown }
  const place = /^\s+at .*$/m.exec(err.stack ?? '')?.[0].trim()
  return { key: `${level} ${text} ${err.name} ${String(code ?? '')} ${place ?? ''}`, text: text || err.name }
}
