import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Clock } from '../domain/clock.ts'
import type { LostEvents } from '../domain/federation/lost-events.ts'
import type { DeviceLists } from '../domain/keys/device-lists.ts'
import { LOST_EVENT_ROOMS_AT_ONCE, MAX_LOST_EVENT_ATTEMPTS } from '../domain/limits/backups.ts'
import type { RestoredRooms } from '../domain/rooms/write/restored-rooms.ts'
import {
  dueRestoredRooms,
  finishRestoredRoom,
  finishRestoredUser,
  getRestoredUsers,
  isAnyRoomRestored,
  postponeRestoredRoom,
} from '../store/backup/restore-epochs.ts'
import type { Database } from '../store/db/db.ts'

const USERS_AT_ONCE = 50
/** Other servers fetch our keys when we ask them: first this server has to listen. */
const FIRST_MS = 1_000
const LOOK_AGAIN_MS = 5_000
const LONGEST_PAUSE_MS = 6 * 3_600_000

/** After a restore: fetches lost events room by room, and tells other servers that device lists may have changed. Ends when all is done. */
export function startRestoreRecovery(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly lostEvents: LostEvents
  readonly restoredRooms: RestoredRooms
  readonly deviceLists: Pick<DeviceLists, 'change'>
}): { close(): Promise<void> } {
  const { db, clock, log, lostEvents, restoredRooms, deviceLists } = deps
  const closing = new AbortController()
  const { signal } = closing

  async function askAbout(roomNid: number, attempts: number): Promise<void> {
    const isDone = (await lostEvents.fetch(roomNid)) || attempts + 1 >= MAX_LOST_EVENT_ATTEMPTS
    const pauseMs = Math.min(LOOK_AGAIN_MS * 2 ** attempts, LONGEST_PAUSE_MS)
    await db.tx((tx) =>
      isDone ? finishRestoredRoom(tx, roomNid) : postponeRestoredRoom(tx, roomNid, clock.now() + pauseMs),
    )
  }

  async function tellOfDevices(): Promise<void> {
    for (;;) {
      const users = await getRestoredUsers(db, USERS_AT_ONCE)
      if (users.length === 0 || signal.aborted) return
      for (const userNid of users) {
        await deviceLists.change(userNid, async (tx) => {
          await finishRestoredUser(tx, userNid)
          return { audience: 'sharing', result: undefined }
        })
      }
    }
  }

  async function work(): Promise<void> {
    await pause(FIRST_MS, undefined, { signal, ref: false })
    for (;;) {
      try {
        await tellOfDevices()
        const due = await dueRestoredRooms(db, clock.now(), LOST_EVENT_ROOMS_AT_ONCE)
        await Promise.all(
          due.map(({ room_nid, attempts }) => restoredRooms.asking(room_nid) ?? askAbout(room_nid, attempts)),
        )
        if (due.length > 0) continue
        if (!(await isAnyRoomRestored(db))) return
      } catch (err) {
        log.warn({ err }, 'the recovery after a restore is interrupted; it goes on soon')
      }
      await pause(LOOK_AGAIN_MS, undefined, { signal, ref: false })
    }
  }

  // Whoever writes into a room before its turn has it asked about at once.
  restoredRooms.askBy((roomNid) => askAbout(roomNid, 0).catch((err) => log.warn({ err }, 'a restored room must wait')))
  const running = work().catch(() => {})
  return {
    async close() {
      closing.abort()
      await running
    },
  }
}
