import type { RoomId } from '../../core/ids.ts'

/** Work in a room. It never rejects. */
export interface RoomTask {
  readonly roomId: RoomId
  readonly work: () => Promise<void>
}

/** Works in some rooms at a time. One that takes long goes on beside the others, which do not wait for it. */
export interface RoomTasks {
  /** Rooms that still take long. */
  slow(): RoomId[]
  /** Resolves once all is done but what takes long. @param whenDone is called for each of these when it is done */
  run(rooms: readonly RoomTask[], whenDone: () => void): Promise<void>
}

export function createRoomTasks(options: {
  readonly atOnce: number
  readonly patienceMs: number
  /** So many may take long. Others wait for one more. */
  readonly mostSlow: number
}): RoomTasks {
  const { atOnce, patienceMs, mostSlow } = options
  const slow = new Set<RoomId>()

  return {
    slow: () => [...slow],
    async run(rooms, whenDone) {
      const queue = rooms.values()
      const runSome = async (): Promise<void> => {
        for (const { roomId, work } of queue) {
          const working = work()
          if (slow.size >= mostSlow) await working
          else if (!(await isDoneIn(working, patienceMs))) {
            slow.add(roomId)
            void working.then(() => {
              slow.delete(roomId)
              whenDone()
            })
          }
        }
      }
      await Promise.all(Array.from({ length: atOnce }, runSome))
    },
  }
}

async function isDoneIn(working: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const isDone = await Promise.race([working.then(() => true), late])
  clearTimeout(timer)
  return isDone
}
