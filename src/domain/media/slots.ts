import { ProtocolError } from '../../core/errors.ts'

/** Limits how much work runs at a time, for each key and in all. Further work waits, and beyond another limit it is refused. */
export interface Slots {
  /** @throws ProtocolError `M_LIMIT_EXCEEDED` */
  run<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createSlots(limits: {
  readonly perKey: number
  readonly total: number
  readonly waitingPerKey: number
}): Slots {
  const busy = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()
  let total = 0

  function release(key: string): void {
    const next = waiting.get(key)?.shift()
    if (next !== undefined) {
      next()
      return
    }
    waiting.delete(key)
    total -= 1
    const left = (busy.get(key) ?? 1) - 1
    if (left === 0) busy.delete(key)
    else busy.set(key, left)
  }

  /** Work that ends hands its slot to work that waits. */
  async function enter(key: string): Promise<void> {
    const now = busy.get(key) ?? 0
    if (now < limits.perKey && total < limits.total) {
      busy.set(key, now + 1)
      total += 1
      return
    }
    const line = waiting.get(key) ?? []
    // If none of the key's work is running, nothing would ever wake this one.
    if (now === 0 || line.length >= limits.waitingPerKey) throw tooMany()
    waiting.set(key, line)
    await new Promise<void>((resolve) => line.push(resolve))
  }

  return {
    async run(key, work) {
      await enter(key)
      try {
        return await work()
      } finally {
        release(key)
      }
    },
  }
}

function tooMany(): ProtocolError {
  return new ProtocolError('M_LIMIT_EXCEEDED', 'Too much media is asked for at once. Try again in a few seconds.', {
    extra: { retry_after_ms: 5_000 },
  })
}
