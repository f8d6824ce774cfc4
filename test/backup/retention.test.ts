import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backupId, timeOfBackup } from '../../src/core/backup/manifest.ts'
import { readKeep, superseded } from '../../src/core/backup/retention.ts'

const at = (day: string) => ({ id: day, at: Date.parse(`${day}Z`) })

describe('which backups are kept', () => {
  test('the newest of each of the last days, weeks and months that have one', () => {
    const days = [
      '2026-01-05T01:00',
      '2026-01-05T09:00',
      '2026-01-04T09:00',
      '2025-12-29T00:00',
      '2025-12-28T23:59',
      '2025-12-01T00:00',
      '2025-11-30T00:00',
    ]
    const gone = superseded(days.map(at), { days: 2, weeks: 3, months: 2 })
    // 5 January was a Monday: its week, that of 29 December, and that of 22 December are the weeks.
    expect(gone.sort()).toEqual(['2025-11-30T00:00', '2025-12-01T00:00', '2026-01-05T01:00'])
  })

  test('the newest is kept always, and no more than the rule allows', () => {
    const times = fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 1, maxLength: 50 })
    const count = fc.integer({ min: 0, max: 9 })
    fc.assert(
      fc.property(times, count, count, count, (all, days, weeks, months) => {
        const backups = all.map((time, index) => ({ id: String(index), at: time }))
        const gone = new Set(superseded(backups, { days, weeks, months }))
        const newest = Math.max(...all)
        expect(backups.some(({ id, at }) => at === newest && !gone.has(id))).toBe(true)
        expect(all.length - gone.size).toBeLessThanOrEqual(Math.max(1, days + weeks + months))
        const left = backups.filter(({ id }) => !gone.has(id))
        expect(superseded(left, { days, weeks, months })).toEqual([])
      }),
    )
  })

  test('rules are read strictly', () => {
    expect(readKeep('7d,4w,12m')).toEqual({ days: 7, weeks: 4, months: 12 })
    expect(readKeep('1m')).toEqual({ days: 0, weeks: 0, months: 1 })
    for (const wrong of ['', '7', '7d4w', '0d', '-1d', '7y', '99999d']) expect(readKeep(wrong)).toBeUndefined()
  })

  test('ids of backups say their time', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 4e12 }), (time) => timeOfBackup(backupId(time)) === time))
    for (const wrong of ['', '..', '20261125T073000Z', '20261399T000000000Z'])
      expect(timeOfBackup(wrong)).toBeUndefined()
  })
})
