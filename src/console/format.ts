const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined || Number.isNaN(count)) return '–'
  let rest = count
  let unit = 0
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024
    unit++
  }
  return `${rest.toLocaleString('en', { maximumFractionDigits: rest < 10 && unit > 0 ? 1 : 0 })} ${UNITS[unit]}`
}

export function count(number: number | null | undefined): string {
  return number === null || number === undefined || Number.isNaN(number)
    ? '–'
    : number.toLocaleString('en', { maximumFractionDigits: number < 10 ? 1 : 0 })
}

const STEPS: readonly [unit: Intl.RelativeTimeFormatUnit, ms: number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const MOMENT = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })

/** How long ago, or how long from now; far away, the date. */
export function since(ms: number, now = Date.now()): string {
  const away = ms - now
  if (Math.abs(away) > 30 * 86_400_000) return MOMENT.format(ms)
  for (const [unit, length] of STEPS) {
    if (Math.abs(away) >= length) return RELATIVE.format(Math.trunc(away / length), unit)
  }
  return 'now'
}

export const moment = (ms: number): string => MOMENT.format(ms)

/** A length of time in its two largest units. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const parts: string[] = []
  let rest = ms
  for (const [unit, length] of STEPS) {
    const whole = Math.floor(rest / length)
    rest -= whole * length
    if (whole > 0) parts.push(`${whole} ${unit[0]}`)
  }
  return parts.slice(0, 2).join(' ')
}
