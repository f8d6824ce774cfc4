/** How long backups are kept: the newest of each of the last days, weeks and months that have one. */
export interface Keep {
  readonly days: number
  readonly weeks: number
  readonly months: number
}

const DAY_MS = 86_400_000
const PART = /^(\d{1,4})([dwm])$/
const UNITS = { d: 'days', w: 'weeks', m: 'months' } as const

/** Reads `7d,4w,12m`. Undefined for any other text, and for a rule that keeps nothing. */
export function readKeep(text: string): Keep | undefined {
  const keep = { days: 0, weeks: 0, months: 0 }
  for (const part of text.split(',')) {
    const [, count, unit] = PART.exec(part.trim()) ?? []
    if (count === undefined) return undefined
    keep[UNITS[unit as keyof typeof UNITS]] = Number(count)
  }
  return keep.days + keep.weeks + keep.months > 0 ? keep : undefined
}

/** The ids of the backups that a rule does not keep. The newest one is always kept. @param backups with their times in ms, in any order */
export function superseded(backups: readonly { readonly id: string; readonly at: number }[], keep: Keep): string[] {
  const newestFirst = [...backups].sort((a, b) => b.at - a.at)
  const kept = new Set(newestFirst.slice(0, 1).map(({ id }) => id))
  const periods: [number, (at: number) => number | string][] = [
    [keep.days, (at) => Math.floor(at / DAY_MS)],
    // Weeks begin on a Monday, as 5 January 1970 was.
    [keep.weeks, (at) => Math.floor((at / DAY_MS - 4) / 7)],
    [keep.months, (at) => new Date(at).toISOString().slice(0, 7)],
  ]
  for (const [count, periodOf] of periods) {
    const seen = new Set<number | string>()
    for (const { id, at } of newestFirst) {
      const period = periodOf(at)
      if (seen.has(period) || seen.size === count) continue
      seen.add(period)
      kept.add(id)
    }
  }
  return newestFirst.filter(({ id }) => !kept.has(id)).map(({ id }) => id)
}
