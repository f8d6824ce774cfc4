import { type QueueRow, saveQueues } from '../../store/appservices/appservice-queue.ts'
import type { Database } from '../../store/db/db.ts'

/** Stores the services' queue rows. Rows that wait during one commit share the next. */
export interface QueueStore {
  /** Resolves when the row is durable. A newer row of the same service replaces one that still waits. */
  save(row: QueueRow): Promise<void>
}

export function createQueueStore(db: Database): QueueStore {
  let waiting = new Map<string, QueueRow>()
  let next: Promise<void> | undefined
  let running: Promise<void> | undefined

  async function write(): Promise<void> {
    // Lets all rows of one beat arrive.
    await new Promise(setImmediate)
    await running?.catch(() => {})
    const rows = [...waiting.values()]
    waiting = new Map()
    running = db.tx((tx) => saveQueues(tx, rows))
    next = undefined
    await running
  }

  return {
    save(row) {
      waiting.set(row.appservice_id, row)
      next ??= write()
      return next
    },
  }
}
