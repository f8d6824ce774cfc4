import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  MAX_PUSHES_AT_ONCE,
  MAX_PUSHES_PER_GATEWAY,
  MAX_PUSHES_TO_UNPROVEN_GATEWAY,
  MAX_PUSHES_TO_UNPROVEN_GATEWAYS,
} from '../../src/domain/limits/pushers.ts'
import { Gateways, LOOK_EVERY_MS, type Turn, type Waiting } from '../../src/domain/pushing/gateways.ts'

/** A pusher with so many notifications. Each request is answered when the test says so. */
class Pusher implements Waiting {
  readonly origin: string
  left: number
  answer: ((turn: Turn) => void) | undefined

  constructor(origin: string, left = 1) {
    this.origin = origin
    this.left = left
  }

  get dueAt(): number | undefined {
    return this.left > 0 ? 0 : undefined
  }

  run(): Promise<Turn> {
    return new Promise((resolve) => {
      this.answer = (turn) => {
        this.answer = undefined
        if (turn === 'answered') this.left -= 1
        resolve(turn)
      }
    })
  }
}

const random = { bytes: (count: number) => Buffer.alloc(count, 128) }
const running = (pushers: readonly Pusher[]) => pushers.filter(({ answer }) => answer !== undefined)

function open(now = () => 0): { gateways: Gateways; add(origin: string, count: number, left?: number): Pusher[] } {
  const gateways = new Gateways({ clock: { now }, random })
  return {
    gateways,
    add(origin, count, left) {
      const pushers = Array.from({ length: count }, () => new Pusher(origin, left))
      for (const one of pushers) gateways.ready(one)
      return pushers
    },
  }
}

async function prove(add: (origin: string, count: number) => Pusher[], origin: string): Promise<void> {
  const [first] = add(origin, 1)
  first!.answer?.('answered')
  await turn()
}

afterEach(() => void vi.useRealTimers())

describe('requests to gateways', () => {
  it('are few to one that has not answered yet, and more to one that has', async () => {
    const { add } = open()
    const pushers = add('https://a', 100)
    expect(running(pushers)).toHaveLength(MAX_PUSHES_TO_UNPROVEN_GATEWAY)
    running(pushers)[0]!.answer?.('answered')
    await turn()
    expect(running(pushers)).toHaveLength(MAX_PUSHES_PER_GATEWAY)
  })

  it('leave room for gateways that answer, however many do not', async () => {
    const { add } = open()
    const silent = Array.from({ length: 50 }, (_, index) => add(`https://silent${index}`, 5)).flat()
    expect(running(silent)).toHaveLength(MAX_PUSHES_TO_UNPROVEN_GATEWAYS)
    const { add: addProven } = open()
    await prove(addProven, 'https://a')
    expect(running(addProven('https://a', 5))).toHaveLength(5)
  })

  it('are bounded in all', async () => {
    const { add } = open()
    const origins = Array.from({ length: 5 }, (_, index) => `https://g${index}`)
    for (const origin of origins) await prove(add, origin)
    const pushers = origins.flatMap((origin) => add(origin, 50))
    expect(running(pushers)).toHaveLength(MAX_PUSHES_AT_ONCE)
    // Whoever ends makes room for another, and no gateway is left out for long.
    for (let index = 0; index < 200; index++) {
      const now = running(pushers)
      now[(index * 7) % now.length]?.answer?.('answered')
      await turn()
    }
    const served = origins.map((origin) => pushers.filter((one) => one.origin === origin && one.left === 0).length)
    expect(Math.min(...served)).toBeGreaterThan(0)
  })

  it('to one that does not answer pause longer and longer, up to an hour, and go on in order when it is back', async () => {
    let now = 0
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { gateways, add } = open(() => now)
    /** Those that run after the next look at what is due. */
    const looked = () => {
      vi.advanceTimersByTime(LOOK_EVERY_MS)
      return running(pushers)
    }
    const pushers = add('https://a', 10)
    for (const one of running(pushers)) one.answer?.('unanswered')
    await turn()
    expect(running(pushers)).toEqual([])
    const pauses: number[] = []
    for (let attempt = 0; attempt < 15; attempt++) {
      const [news] = gateways.takeNews()
      pauses.push(news!.retry_at - now)
      now = news!.retry_at
      const attempts = looked()
      expect(attempts).toHaveLength(1)
      attempts[0]!.answer?.('unanswered')
      await turn()
    }
    expect(pauses.map((pause) => Math.round(pause / 1000))).toEqual([
      ...[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600],
    ])
    now += 3_600_000
    const [probe] = looked()
    probe!.answer?.('answered')
    await turn()
    expect(running(pushers)).toHaveLength(9)
    expect(gateways.takeNews().at(-1)).toEqual({ origin: 'https://a', failures: 0, retry_at: 0 })
  })
})
