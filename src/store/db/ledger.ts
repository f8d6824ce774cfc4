import type { Database, Tx } from './db.ts'

// Table: ledger

/**
 * The durable stream of everything that users see and that is not a room event: account data, receipts, devices.
 *
 * Writers queue. One transaction takes all waiting writes, gives each the next position, and publishes the positions
 * after its commit. So positions are in commit order without gaps, and one fsync serves many writers.
 */
export interface Ledger {
  /**
   * Runs `write` with its position inside the next group commit; resolves after that commit.
   *
   * @param committed runs after the commit and before the position is published, so that readers at the position see its effects
   */
  append<T>(
    write: (tx: Tx, position: number) => Promise<T>,
    committed?: (result: T, position: number) => void,
  ): Promise<T>
  /** The newest committed position. */
  position(): number
  /** Calls `listener` whenever `position()` has moved, before any writer gets its answer. */
  onMoved(listener: () => void): void
  /** Calls `listener` if the answer to a commit was lost and the commit turns out to have happened: there may be news up to `position()`. */
  onMissed(listener: () => void): void
}

interface Entry {
  readonly write: (tx: Tx, position: number) => Promise<unknown>
  readonly committed: ((result: never, position: number) => void) | undefined
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

const MAX_GROUP = 256

/** Another process took the positions that were to be given out. Nothing was written. */
class LedgerMoved extends Error {}

export async function openLedger(db: Database): Promise<Ledger> {
  const [row] = await db.query<{ position: number }>('SELECT position FROM ledger')
  let published = row?.position ?? 0
  let waiting: Entry[] = []
  let draining = false
  /** The answer to a commit was lost, and it may have happened; or another process wrote. */
  let inDoubt = false
  const listeners: (() => void)[] = []
  const moved: (() => void)[] = []

  /** Waits for a commit that may still be running, and continues from its position, so that no position is used twice. */
  async function settleDoubt(): Promise<void> {
    const [row] = await db.tx((tx) => tx.query<{ position: number }>('SELECT position FROM ledger FOR UPDATE'))
    inDoubt = false
    const position = row?.position ?? 0
    if (position === published) return
    published = position
    for (const listener of [...moved, ...listeners]) listener()
  }

  /** Commits a group. If that fails, each entry is tried alone, so that one bad write does not fail the others. */
  async function commit(group: readonly Entry[]): Promise<void> {
    try {
      if (inDoubt) await settleDoubt()
      let position = published
      const results = await db.tx(async (tx) => {
        const writes = group.map((entry) => entry.write(tx, ++position))
        const [values, moved] = await Promise.all([
          Promise.all(writes),
          tx.query('UPDATE ledger SET position = $1 WHERE position = $2 RETURNING position', [
            published + group.length,
            published,
          ]),
        ])
        if (moved.length === 0) throw new LedgerMoved()
        return values
      })
      group.forEach((entry, index) => {
        entry.committed?.(results[index] as never, published + index + 1)
      })
      published = position
      for (const listener of moved) listener()
      group.forEach((entry, index) => {
        entry.resolve(results[index] as never)
      })
    } catch (error) {
      if (error instanceof LedgerMoved) {
        inDoubt = true
        return commit(group)
      }
      const isOutage = (error as { status?: number }).status === 503
      if (isOutage) inDoubt = true
      if (isOutage || group.length === 1) for (const entry of group) entry.reject(error)
      else for (const entry of group) await commit([entry])
    }
  }

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      const group = waiting.slice(0, MAX_GROUP)
      waiting = waiting.slice(MAX_GROUP)
      await commit(group)
    }
    draining = false
  }

  return {
    append: (write, committed) =>
      new Promise((resolve, reject) => {
        waiting.push({ write, committed, resolve, reject })
        if (draining) return
        draining = true
        setImmediate(() => void drain())
      }),
    position: () => published,
    onMoved: (listener) => void moved.push(listener),
    onMissed: (listener) => void listeners.push(listener),
  }
}
