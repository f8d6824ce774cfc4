import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ProtocolError } from '../../../../core/errors.ts'
import type { RoomId, UserId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import { blockRoom } from '../../../../store/rooms/blocked-rooms.ts'
import {
  type DeletionRequest,
  type DeletionRow,
  deletionsOfRoom,
  endDeletion,
  findDeletion,
  insertDeletion,
  isDelivered,
  openDeletions,
} from '../../../../store/rooms/room-deletions.ts'
import { findRoomNid } from '../../../../store/rooms/rooms.ts'
import type { Random } from '../../../clock.ts'
import type { ClosedRooms } from '../../write/closed-rooms.ts'
import { createEvacuation, type EvacuationParts } from './evacuation.ts'
import { createPurge, type PurgeParts } from './purge.ts'

/** Removes rooms from this server: operators begin a removal, a worker carries it out, and a restart does not stop it. */
export interface RoomDeletions {
  /**
   * Closes a room at once and schedules the rest. Returns the deletion's id.
   *
   * @throws ProtocolError `M_NOT_FOUND` for a room that this server does not know, `M_UNKNOWN` (400) when it is already being removed
   */
  begin(by: string, roomId: RoomId, request: DeletionRequest & { readonly block: boolean }): Promise<string>
  /** @throws ProtocolError `M_NOT_FOUND` */
  status(deletionId: string): Promise<JsonObject>
  /**
   * What became of a deletion, once it has ended. @throws ProtocolError `M_NOT_FOUND`; `M_UNKNOWN` (400) with the reason if it failed, 503
   * if it takes longer than a minute: it goes on
   */
  ended(deletionId: string): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` when the room has none */
  ofRoom(roomId: RoomId): Promise<JsonObject[]>
  /** Closes the rooms whose removal an earlier process began. Call it before anything asks for rooms. */
  resume(): Promise<void>
  /** Continues all deletions. One that has to wait for other servers is left for the next call. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** Calls the listener when there is something to do. */
  onWake(listener: () => void): void
}

export interface DeletionParts extends EvacuationParts, PurgeParts {
  readonly closed: ClosedRooms
  readonly random: Random
  readonly log: Logger
}

const ID_BYTES = 12
/** How long waiting clients have to learn that their users have left. */
const FAREWELL_MS = 500
/** How long other servers have for that. */
const DELIVERY_MS = 10 * 60_000
/** How long somebody waits for the end of a deletion, and how often they look. */
const LONGEST_WAIT_MS = 60_000
const LOOK_EVERY_MS = 200

export function createRoomDeletions(parts: DeletionParts): RoomDeletions {
  const { db, clock, closed, registry, log } = parts
  const evacuation = createEvacuation(parts)
  const purge = createPurge(parts)
  let wake = (): void => {}

  async function end(deletion: DeletionRow, error?: string): Promise<void> {
    const status = error === undefined ? 'complete' : 'failed'
    await db.tx((tx) => endDeletion(tx, deletion.deletion_id, { status, error, at: clock.now() }))
    closed.reopen(deletion.room_id)
    log.info({ room: deletion.room_id, deletion: deletion.deletion_id, status }, 'a room was removed')
  }

  async function stillInside({ room_nid, request }: DeletionRow): Promise<UserId[]> {
    return request.forcePurge ? [] : evacuation.remaining(room_nid)
  }

  /**
   * Local clients and other servers learn first that our users have left. Those that do not get it in time find out on their next request.
   */
  async function purgeOnceSent(deletion: DeletionRow, isBegun: boolean, isOver: () => boolean): Promise<boolean> {
    if (!isBegun) {
      const isPatient = clock.now() < deletion.asked_at + DELIVERY_MS
      if (isPatient && (await evacuation.isShared(deletion.room_nid)) && !(await isDelivered(db, deletion.room_nid))) {
        return false
      }
      await delay(FAREWELL_MS)
    }
    return purge.run(deletion, isOver)
  }

  async function carryOut(deletion: DeletionRow, isOver: () => boolean): Promise<void> {
    const isPurging = (await findRoomNid(db, deletion.room_id)) !== deletion.room_nid
    if (!isPurging) {
      await evacuation.run(deletion, isOver)
      if (isOver()) return
      const inside = await stillInside(deletion)
      if (inside.length > 0) return end(deletion, `Users could not be removed from the room: ${inside.length}.`)
    }
    if (deletion.request.purge && !(await purgeOnceSent(deletion, isPurging, isOver))) return
    await end(deletion)
  }

  async function run(deletion: DeletionRow, isOver: () => boolean): Promise<void> {
    try {
      await carryOut(deletion, isOver)
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      await end(deletion, error.message)
    }
  }

  return {
    async begin(by, roomId, { block, ...request }) {
      const room = await registry.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const id = parts.random.bytes(ID_BYTES).toString('base64url')
      const isFirst = await db.tx(async (tx) => {
        const deletion = { id, roomId, roomNid: room.nid, request, askedAt: clock.now() }
        if (!(await insertDeletion(tx, deletion))) return false
        if (block) await blockRoom(tx, roomId, by, clock.now())
        return true
      })
      if (!isFirst) throw new ProtocolError('M_UNKNOWN', 'This room is being removed already.', { status: 400 })
      closed.close(roomId)
      wake()
      return id
    },
    async status(deletionId) {
      const deletion = deletionId.includes('\0') ? undefined : await findDeletion(db, deletionId)
      if (deletion === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such deletion.')
      return viewOf(deletion)
    },
    async ended(deletionId) {
      for (const until = performance.now() + LONGEST_WAIT_MS; performance.now() < until; await delay(LOOK_EVERY_MS)) {
        const deletion = await findDeletion(db, deletionId)
        if (deletion === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such deletion.')
        if (deletion.status === 'complete') return viewOf(deletion).shutdown_room as JsonObject
        if (deletion.status !== 'failed') continue
        throw new ProtocolError('M_UNKNOWN', deletion.error ?? 'The room could not be removed.', { status: 400 })
      }
      const text = `The room is still being removed; delete_status/${deletionId} says how far it is.`
      throw new ProtocolError('M_UNKNOWN', text, { status: 503 })
    },
    async ofRoom(roomId) {
      const deletions = await deletionsOfRoom(db, roomId)
      if (deletions.length === 0) throw new ProtocolError('M_NOT_FOUND', 'This room was not to be removed lately.')
      return deletions.map(viewOf)
    },
    async resume() {
      for (const { room_id: roomId, room_nid: roomNid } of await openDeletions(db)) {
        closed.close(roomId)
        if ((await findRoomNid(db, roomId)) !== roomNid) purge.forget({ roomId, roomNid })
      }
    },
    async runAll(isOver) {
      for (const deletion of await openDeletions(db)) if (!isOver()) await run(deletion, isOver)
    },
    onWake(listener) {
      wake = listener
    },
  }
}

function viewOf(deletion: DeletionRow): JsonObject {
  const { members, moved, failed } = deletion
  const done = (members ?? []).slice(0, moved)
  return {
    delete_id: deletion.deletion_id,
    room_id: deletion.room_id,
    status: deletion.status,
    ...(deletion.error === null ? {} : { error: deletion.error }),
    shutdown_room: {
      kicked_users: done.filter((userId) => !failed.includes(userId)),
      failed_to_kick_users: [...failed],
      local_aliases: [...deletion.aliases],
      new_room_id: deletion.new_room_id,
    },
    users_to_move: members?.length ?? 0,
    rows_removed: deletion.removed,
  }
}
