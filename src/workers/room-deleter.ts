import type { Logger } from 'pino'
import type { RoomDeletions } from '../domain/rooms/deletion/deletions.ts'

/** Removes the rooms that operators want removed. */
export interface RoomDeleter {
  close(): Promise<void>
}

const EVERY_MS = 5_000

export function startRoomDeleter(deps: { readonly deletions: RoomDeletions; readonly log: Logger }): RoomDeleter {
  const { deletions, log } = deps
  let closed = false
  let running: Promise<void> | undefined
  let again = false

  async function work(): Promise<void> {
    do {
      again = false
      try {
        await deletions.runAll(() => closed)
      } catch (error) {
        log.warn({ err: error }, 'a room could not be removed; it will be tried again')
      }
    } while (again && !closed)
  }

  /** One round at a time: a call during a round is one more round after it. */
  function start(): void {
    again = true
    if (closed || running !== undefined) return
    running = work().finally(() => {
      running = undefined
    })
  }

  const timer = setInterval(start, EVERY_MS).unref()
  deletions.onWake(start)
  start()

  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
