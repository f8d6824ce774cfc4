import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import {
  countOpenRedactions,
  endUserRedaction,
  findUserRedaction,
  insertUserRedactions,
  nextUserRedaction,
  noteRedacted,
  type RedactionRequest,
  roomsToRedact,
  saidBelow,
  type UserRedactionRow,
} from '../../store/rooms/user-redactions.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_OPEN_REDACTIONS,
  MAX_REDACTION_FAILURES,
  REDACTED_AT_ONCE,
  REDACTION_SCANNED,
} from '../limits/moderation.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import { restAfterWork } from '../spare-time.ts'
import { createRedactor, type RedactorParts, redactorsOf } from './redactor.ts'

/**
 * Redacts all that users have said: operators ask for it, a worker carries it out in spare time, and a restart does not stop it. What a
 * user of this server said is redacted in their own name where they are in the room, otherwise by whoever may. Invitations that nobody has
 * answered are taken back.
 */
export interface UserRedactions {
  /** @returns the ids, in the order of the users. @throws ProtocolError `M_LIMIT_EXCEEDED` when too many wait */
  begin(userIds: readonly UserId[], request: RedactionRequest): Promise<string[]>
  /** In the form that existing tools read. @throws ProtocolError `M_NOT_FOUND` */
  status(id: string): Promise<JsonObject>
  /** Continues all that is open. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** Calls the listener when there is something to do. */
  onWake(listener: () => void): void
}

export interface UserRedactionParts extends RedactorParts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly registry: RoomRegistry
}

const ID_BYTES = 12
const RETRY_AFTER_MS = 60_000

export function createUserRedactions(parts: UserRedactionParts): UserRedactions {
  const { db, clock, random, log, registry } = parts
  const redact = createRedactor(parts)
  let wake = (): void => {}

  /** Redacts what was said in one stretch of the room's timeline. */
  async function step(at: UserRedactionRow, room: Room, senderNid: number, isOver: () => boolean) {
    const { request, user_id: userId } = at
    const below = at.below_pos ?? Number.MAX_SAFE_INTEGER
    const { said, next } = await saidBelow(db.bulk, { roomNid: room.nid, senderNid, below, scanned: REDACTION_SCANNED })
    const isWanted = ({ origin_server_ts: ts }: { readonly origin_server_ts: number }) =>
      ts >= (request.after ?? 0) && ts <= (request.before ?? Number.MAX_SAFE_INTEGER)
    const wanted = said.filter(isWanted).slice(0, Math.max(0, request.limit - at.in_room))
    const redactors = await redactorsOf(room, userId, request.by, request.asOperator)
    let now = at
    for (let from = 0; from < wanted.length && !isOver(); from += REDACTED_AT_ONCE) {
      const begun = performance.now()
      const some = wanted.slice(from, from + REDACTED_AT_ONCE)
      const done = await redact({ room, userId, reason: request.reason, redactors }, some)
      now = {
        ...now,
        in_room: now.in_room + some.length,
        redacted: now.redacted + done.redacted,
        withdrawn: now.withdrawn + done.withdrawn,
        failed: joined(now.failed, done.failed),
      }
      const noted = now
      await db.tx((tx) => noteRedacted(tx, noted))
      await restAfterWork(performance.now() - begun, NEVER)
    }
    const isRoomDone = next === undefined || now.in_room >= request.limit
    return { now, next: isOver() ? below : isRoomDone ? undefined : next }
  }

  async function run(redaction: UserRedactionRow, isOver: () => boolean): Promise<void> {
    const { redaction_id: id, user_id: userId, request } = redaction
    const senderNid = (await findUserNids(db, [userId])).get(userId)
    const rooms = redaction.rooms ?? (await roomsToRedact(db.bulk, userId, request.rooms))
    let at: UserRedactionRow = { ...redaction, rooms }
    while (senderNid !== undefined && at.room_index < rooms.length) {
      if (isOver()) return
      const room = await knownRoom(rooms[at.room_index]!)
      const { now, next } = room ? await step(at, room, senderNid, isOver) : { now: at, next: undefined }
      if (isOver()) return
      at =
        next === undefined
          ? { ...now, room_index: now.room_index + 1, below_pos: null, in_room: 0 }
          : { ...now, below_pos: next }
      const noted = at
      await db.tx((tx) => noteRedacted(tx, noted))
    }
    await db.tx((tx) => endUserRedaction(tx, id, clock.now(), undefined))
    log.info({ user: userId, redacted: at.redacted, withdrawn: at.withdrawn }, 'what a user said was redacted')
  }

  /** A fault of ours must not keep the redactions after it waiting for ever. */
  async function runOrEnd(redaction: UserRedactionRow, isOver: () => boolean): Promise<void> {
    try {
      await run(redaction, isOver)
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      log.error({ err: error, user: redaction.user_id }, 'a redaction was given up')
      const text = 'The server could not go on with this redaction; its log says why.'
      await db.tx((tx) => endUserRedaction(tx, redaction.redaction_id, clock.now(), text))
    }
  }

  /** Undefined for a room that was removed meanwhile. */
  async function knownRoom(nid: number): Promise<Room | undefined> {
    try {
      return await registry.getByNid(nid)
    } catch (err) {
      log.debug({ err, room: nid }, 'a room to redact in is gone')
      return undefined
    }
  }

  return {
    async begin(userIds, request) {
      if ((await countOpenRedactions(db)) + userIds.length > MAX_OPEN_REDACTIONS) {
        const text = 'Many redactions wait already. Ask for this one when some have ended.'
        throw new ProtocolError('M_LIMIT_EXCEEDED', text, { extra: { retry_after_ms: RETRY_AFTER_MS } })
      }
      const wanted = userIds.map((userId) => ({ id: random.bytes(ID_BYTES).toString('base64url'), userId }))
      await db.tx((tx) => insertUserRedactions(tx, wanted, request, clock.now()))
      wake()
      return wanted.map(({ id }) => id)
    },
    async status(id) {
      const row = id.includes('\0') ? undefined : await findUserRedaction(db, id)
      if (!row) throw new ProtocolError('M_NOT_FOUND', 'There is no such redaction.')
      return view(row)
    },
    async runAll(isOver) {
      for (let next = await nextUserRedaction(db); next && !isOver(); next = await nextUserRedaction(db)) {
        await runOrEnd(next, isOver)
      }
    },
    onWake(listener) {
      wake = listener
    },
  }
}

/** The rests are short: whoever stops the server waits for one at most. */
const NEVER = new AbortController().signal

function joined(known: UserRedactionRow['failed'], more: UserRedactionRow['failed']): UserRedactionRow['failed'] {
  return Object.fromEntries([...Object.entries(known), ...Object.entries(more)].slice(0, MAX_REDACTION_FAILURES))
}

function view({ rooms, ended_at, error, failed, redacted, withdrawn, ...row }: UserRedactionRow): JsonObject {
  const status = ended_at !== null ? (error === null ? 'complete' : 'failed') : rooms === null ? 'scheduled' : 'active'
  return {
    status,
    failed_redactions: failed,
    user_id: row.user_id,
    total_redacted: redacted,
    invitations_withdrawn: withdrawn,
    ...(error !== null && { error }),
  }
}
