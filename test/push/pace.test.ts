import { describe, expect, it } from 'vitest'
import { PUSH_PACE, URGENT_PUSH_PACE } from '../../src/domain/limits/pushers.ts'
import { type Notice, WEIGHT, type Weight, weightOf } from '../../src/domain/pushing/notice.ts'
import { NoticeLine } from '../../src/domain/pushing/notice-line.ts'
import { PaceUse } from '../../src/domain/pushing/pace.ts'

const OUTCOME = { notify: true, highlight: false, sound: undefined, tweaks: {}, actions: ['notify'] }
const noticeOf = (position: number, roomNid = 1, weight: Weight = WEIGHT.silent): Notice => ({
  ...{ roomNid, eventNid: position, position, isInvitation: false, outcome: OUTCOME, weight, at: 0 },
})
const lineOf = (...notices: Notice[]): NoticeLine => {
  const line = new NoticeLine()
  for (const one of notices) line.push(one)
  return line
}
/** What goes as long as time stands still at `now`, by position. */
function go(line: NoticeLine, now: number): number[] {
  const gone: number[] = []
  for (let dueAt = line.dueAt(now); dueAt !== undefined && dueAt <= now; dueAt = line.dueAt(now)) {
    line.choose(now)
    gone.push(line.first!.position)
    line.take(now)
    line.drop()
  }
  return gone
}
const spent = (now: number): NoticeLine => {
  const line = lineOf(...Array.from({ length: PUSH_PACE.burst }, (_, index) => noticeOf(index - 100)))
  go(line, now)
  return line
}

describe('a pace', () => {
  it('is a burst, and then one at a time', () => {
    const use = new PaceUse({ burst: 3, everyMs: 100 })
    for (const left of [3, 2, 1]) {
      expect([use.free(1_000), use.nextAt(1_000)]).toEqual([left, 1_000])
      use.take(1_000)
    }
    expect([use.free(1_000), use.nextAt(1_000)]).toEqual([0, 1_100])
    expect([use.free(1_099), use.nextAt(1_050)]).toEqual([0, 1_100])
    expect([use.free(1_100), use.free(1_250), use.free(1_300), use.free(9_000)]).toEqual([1, 2, 3, 3])
  })

  it('does not stand still if the clock is moved back', () => {
    const use = new PaceUse({ burst: 1, everyMs: 100 })
    use.take(1_000_000)
    expect([use.free(10), use.nextAt(10)]).toEqual([1, 10])
  })
})

describe('notices', () => {
  it('weigh more if they highlight, ring, invite or sound, and if they are encrypted', () => {
    const sounds = { ...OUTCOME, sound: 'default' }
    expect(weightOf('m.room.message', { ...sounds, highlight: true }, false)).toBe(WEIGHT.urgent)
    expect(weightOf('m.rtc.notification', { ...sounds, sound: 'ring' }, false)).toBe(WEIGHT.urgent)
    expect(weightOf('m.room.member', OUTCOME, true)).toBe(WEIGHT.urgent)
    expect(weightOf('m.room.encrypted', sounds, false)).toBe(WEIGHT.sounds)
    expect(weightOf('m.room.encrypted', OUTCOME, false)).toBe(WEIGHT.encrypted)
    expect(weightOf('m.room.message', OUTCOME, false)).toBe(WEIGHT.silent)
  })

  it('go as they are within the burst', () => {
    const line = lineOf(...Array.from({ length: 10 }, (_, index) => noticeOf(index)))
    expect(go(line, 0)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  it('are left out, the oldest first, as many as are over the burst', () => {
    const line = lineOf(...Array.from({ length: 40 }, (_, index) => noticeOf(index)))
    expect(line.from).toBe(0)
    line.choose(0)
    expect([line.length, line.from, line.standsFrom(line.first!)]).toEqual([10, 0, 0])
    expect(go(line, 0)).toEqual([30, 31, 32, 33, 34, 35, 36, 37, 38, 39])
    expect(line.from).toBeUndefined()
  })

  it('are not left out for one that matters less, or of another room', () => {
    const line = spent(0)
    for (const one of [
      noticeOf(1, 1, WEIGHT.sounds),
      noticeOf(2),
      noticeOf(3),
      noticeOf(4, 2),
      noticeOf(5, 2, WEIGHT.encrypted),
    ]) {
      line.push(one)
    }
    const gone: number[] = []
    for (let now = PUSH_PACE.everyMs; line.length > 0; now += PUSH_PACE.everyMs) gone.push(...go(line, now))
    expect(gone).toEqual([1, 3, 5])
  })

  it('go at once with a mention that comes after them, as one', () => {
    const line = spent(0)
    for (const one of [noticeOf(1), noticeOf(2), noticeOf(3, 2), noticeOf(4, 1, WEIGHT.urgent)]) line.push(one)
    expect(go(line, 0)).toEqual([3, 4])
  })

  it('that are urgent have a larger pace, and stand for each other beyond it', () => {
    const { burst, everyMs } = URGENT_PUSH_PACE
    const line = lineOf(...Array.from({ length: burst + 20 }, (_, index) => noticeOf(index, 1, WEIGHT.urgent)))
    expect(go(line, 0)).toEqual(Array.from({ length: burst }, (_, index) => index + 20))
    for (let position = 100; position < 110; position++) line.push(noticeOf(position, 1, WEIGHT.urgent))
    expect(go(line, 0)).toEqual([])
    expect(go(line, everyMs)).toEqual([109])
  })

  it('that were chosen go, whatever comes after', () => {
    const line = spent(0)
    for (const one of [noticeOf(1), noticeOf(2, 2), noticeOf(3), noticeOf(4, 2)]) line.push(one)
    expect(go(line, PUSH_PACE.everyMs)).toEqual([3])
    for (const one of [noticeOf(5), noticeOf(6, 2), noticeOf(7)]) line.push(one)
    expect(go(line, 2 * PUSH_PACE.everyMs)).toEqual([4])
    expect(go(line, 3 * PUSH_PACE.everyMs)).toEqual([6])
    expect(go(line, 4 * PUSH_PACE.everyMs)).toEqual([7])
  })
})
