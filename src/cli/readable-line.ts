const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 }

/** A JSON log line for people: time, level, message, then the other keys. */
export function readableLine(json: string, isColoured: boolean): string {
  const { time, level, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown>
  const clock = new Date(Number(time)).toTimeString().slice(0, 8)
  const name = String(level).padEnd(5)
  const shown = isColoured ? `\u001b[${COLOURS[String(level)] ?? 0}m${name}\u001b[0m` : name
  const details = Object.entries(rest).map(([key, value]) => ` ${key}=${plain(value)}`)
  return `${clock} ${shown} ${msg ?? ''}${details.join('')}\n${errorText(err)}`
}

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { stack, message } = error as { stack?: string; message?: string }
  return `${stack ?? message ?? ''}\n`
}
