import { language } from './words.ts'

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined || Number.isNaN(count)) return '–'
  let rest = count
  let unit = 0
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024
    unit++
  }
  return `${rest.toLocaleString(language, { maximumFractionDigits: rest < 10 && unit > 0 ? 1 : 0 })} ${UNITS[unit]}`
}

export function count(number: number | null | undefined): string {
  return number === null || number === undefined || Number.isNaN(number)
    ? '–'
    : number.toLocaleString(language, { maximumFractionDigits: number < 10 ? 1 : 0 })
}

const STEPS: readonly [unit: Intl.RelativeTimeFormatUnit, ms: number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]
const RELATIVE = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
const MOMENT = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, {
  dateStyle: 'medium',
  timeStyle: 'short',
})

/** People and servers may name a time that no calendar has. */
const isInCalendar = (ms: number) => Math.abs(ms) <= 8_640_000_000_000_000

/** For machines. */
export const exactly = (ms: number): string | undefined => (isInCalendar(ms) ? new Date(ms).toISOString() : undefined)

/** How long ago, or how long from now; far away, the date. */
export function since(ms: number, now = Date.now()): string {
  const away = ms - now
  if (Math.abs(away) > 30 * 86_400_000) return moment(ms)
  for (const [unit, length] of STEPS) {
    if (Math.abs(away) >= length) return RELATIVE.format(Math.trunc(away / length), unit)
  }
  return RELATIVE.format(0, 'second')
}

export const moment = (ms: number): string => (isInCalendar(ms) ? MOMENT.format(ms) : String(ms))

const LENGTHS = Object.fromEntries(
  STEPS.map(([unit]) => [unit, new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short' })]),
)

/** A length of time in its two largest units. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const parts: string[] = []
  let rest = ms
  for (const [unit, length] of STEPS) {
    const whole = Math.floor(rest / length)
    rest -= whole * length
    if (whole > 0) parts.push(LENGTHS[unit]!.format(whole))
  }
  return parts.slice(0, 2).join(' ')
}

const CLOCK = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

/** The time of day. */
export const clock = (ms: number): string => CLOCK.format(ms)

const DAY = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, { dateStyle: 'medium' })

/** In few letters: the time if it was today, or else the day. */
export function briefly(ms: number, now = Date.now()): string {
  if (!isInCalendar(ms)) return String(ms)
  return DAY.format(ms) === DAY.format(now) ? clock(ms) : DAY.format(ms)
}
