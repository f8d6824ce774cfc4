/** The newest lines of level "warn" or above, as they were written, in a few hundred kilobytes at most. */
export interface RecentErrors {
  /** @param line a line of the log in JSON */
  add(line: string): void
  /** What they say of themselves and of their errors; nothing that may be somebody's: no messages of errors, no ids. */
  list(): readonly RecentError[]
}

export interface RecentError {
  readonly time: string | number
  readonly level: string
  readonly message: string
  readonly repeated?: number
  readonly request_id?: string
  readonly error?: { readonly type: string; readonly code?: string; readonly at: readonly string[] }
}

const MAX_LINES = 100
const MAX_LINE_CHARS = 4_096
const MAX_FRAMES = 12
/** Every line begins so: `log.ts` writes the level first. */
const SEVERE = /^\{"level":"(?:warn|error|fatal)"/

export function createRecentErrors(): RecentErrors {
  const lines: string[] = []
  return {
    add(line) {
      if (!SEVERE.test(line)) return
      lines.push(line.length > MAX_LINE_CHARS ? shortened(line) : line)
      if (lines.length > MAX_LINES) lines.shift()
    },
    list: () => lines.flatMap((line) => reduced(line) ?? []),
  }
}

/** A line that is too long, with only what `list` shows. */
function shortened(line: string): string {
  const read = reduced(line)
  return read === undefined ? '' : JSON.stringify({ ...read, msg: read.message, shown: true })
}

interface Line {
  readonly time?: string | number
  readonly level?: string
  readonly msg?: string
  readonly repeated?: number
  readonly request_id?: string
  readonly err?: { readonly type?: string; readonly message?: string; readonly code?: unknown; readonly stack?: string }
  readonly error?: RecentError['error']
}

function reduced(line: string): RecentError | undefined {
  const read = parsed(line)
  if (read?.level === undefined) return undefined
  const { time = '', level, repeated, request_id, err } = read
  // Without a text of ours, the log takes that of the error.
  const msg = read.msg === err?.message ? '' : (read.msg ?? '')
  const error = err === undefined ? read.error : errorOf(err)
  return {
    time,
    level,
    message: msg,
    ...(typeof repeated === 'number' && { repeated }),
    ...(typeof request_id === 'string' && { request_id }),
    ...(typeof error === 'object' && { error }),
  }
}

function errorOf({ type = 'Error', code, stack = '' }: NonNullable<Line['err']>): RecentError['error'] {
  const frames = stack.split('\n').filter((each) => /^\s+at .*:\d+:\d+\)?$/.test(each))
  return {
    type,
    ...(typeof code === 'string' && /^\w{1,64}$/.test(code) && { code }),
    at: frames.slice(0, MAX_FRAMES).map((each) => each.trim().slice(0, 200)),
  }
}

function parsed(line: string): Line | undefined {
  try {
    return JSON.parse(line) as Line
  } catch {
    return undefined
  }
}
