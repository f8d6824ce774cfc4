import { describe, expect, it } from 'vitest'
import { PUSH_PACE, URGENT_PUSH_PACE } from '../../src/domain/limits/pushers.ts'
import { type Notice, WEIGHT, type Weight, weightOf } from '../../src/domain/pushing/notice.ts'
import { NoticeLine } from '../../src/domain/pushing/notice-line.ts'
import { PaceUse } from '../../src/domain/pushing/pace.ts'

const OUTCOME = { notify: true, highlight: false, sound: undefined, tweaks: {}, actions: ['notify'] }
const noticeOf = (position: number, roomNid = 1, weight: Weight = WEIGHT.silent): Notice => ({
  ...{ roomNid, eventNid: position, position, isInvitation: false, outcome: OUTCOME, weight, at: 0 },
})
const noticeAt = (position: number, at = 0): Notice => ({ ...noticeOf(position), at })
const lineOf = (...notices: Notice[]): NoticeLine => {
  const line = new NoticeLine()
  for (const one of notices) line.push(one)
  return line
}
/** Numbers that look random, the same at each run. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * sides)
  }
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

  it('saves nothing up while a turn is held up, and does not mind less than a turn', () => {
    const use = new PaceUse({ burst: 3, everyMs: 100 })
    for (let count = 0; count < 3; count++) use.take(1_000)
    // It waited from 1,050 on, might have gone at 1,100, and goes at 1,350.
    expect(use.free(1_350)).toBe(3)
    for (let times = 0; times < 2; times++) use.heldUp(1_050, 1_350)
    expect(use.free(1_350)).toBe(1)
    use.take(1_350)
    expect(use.nextAt(1_350)).toBe(1_450)
    use.heldUp(1_360, 1_549)
    use.take(1_549)
    expect(use.nextAt(1_549)).toBe(1_550)
    // Nothing waited meanwhile, or all was free when it began to.
    use.heldUp(9_000, 9_050)
    use.heldUp(9_000, 9_500)
    expect(use.free(9_500)).toBe(3)
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

  it('of a phone that is served too seldom are the newest, after the burst', () => {
    const line = lineOf(noticeAt(0))
    let position = 0
    const ages: number[] = []
    // One comes each 10 ms, and one goes each 300 ms: what is free must not become more and more.
    for (let now = 0; now < 30_000; now += 10) {
      if (!line.renewLast(noticeAt(++position, now), now)) line.push(noticeAt(position, now))
      if (now % 300 !== 0) continue
      line.choose(now)
      ages.push(position - line.first!.position)
      line.take(now)
      line.drop()
    }
    expect(ages.slice(15)).toEqual(ages.slice(15).fill(0))
  })

  it('go as they are within the burst, also after a turn that was held up', () => {
    const line = lineOf(noticeAt(0))
    expect(go(line, 0)).toEqual([0])
    for (let position = 1; position <= 10; position++) line.push(noticeAt(position, 10 * position))
    expect(go(line, 1_500)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it.each(Array.from({ length: 50 }, (_, seed) => seed + 1))(
    'go as they would if none took the place of another before its turn (seed %i)',
    (seed) => {
      const roll = dice(seed)
      const [kept, renewed] = [spent(0), spent(0)]
      let now = 0
      let renewals = 0
      for (let position = 1; position < 400; position++) {
        const weight = [0, 0, 0, 1, 2, 3][roll(6)]! as Weight
        const notice = { ...noticeOf(position, roll(1 + (seed % 3)), weight), at: now }
        kept.push(notice)
        if (renewed.renewLast(notice, now)) renewals += 1
        else renewed.push(notice)
        now += roll(30)
        if (roll(4) > 0) continue
        expect(go(renewed, now)).toEqual(go(kept, now))
        expect(renewed.from).toBe(kept.from)
      }
      expect(renewals).toBeGreaterThan(20)
    },
  )

  it('that were chosen keep their turn, whatever comes after', () => {
    const line = spent(0)
    for (const one of [noticeOf(1), noticeOf(2, 2), noticeOf(3), noticeOf(4, 2)]) line.push(one)
    expect(go(line, PUSH_PACE.everyMs)).toEqual([3])
    for (const one of [noticeOf(5), noticeOf(6, 2), noticeOf(7)]) line.push(one)
    // The other room's turn is not put off by telling of the newest there.
    expect(go(line, 2 * PUSH_PACE.everyMs)).toEqual([6])
    expect(go(line, 3 * PUSH_PACE.everyMs)).toEqual([7])
  })
})
