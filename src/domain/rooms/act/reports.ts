import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId, UserId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { insertReport, type NewReport } from '../../../store/rooms/reports.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { MAX_REPORT_REASON_CHARS, MAX_REPORTED_EVENT_CHARS, MAX_REPORTS_PER_USER } from '../../limits/reports.ts'
import { checkText } from '../../text.ts'
import type { Users } from '../../users.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { RoomAccess } from '../room/room-access.ts'

/** What users tell the administrators of (client-server API, "Reporting Content"). */
export interface Reports {
  /** @throws ProtocolError `M_NOT_FOUND` for an event that is not there, that the user cannot see, or of a room that they are not in */
  event(
    by: Requester,
    roomId: RoomId,
    eventId: EventId,
    report: { readonly reason?: string | undefined; readonly score?: number | undefined },
  ): Promise<void>
  /** Nobody needs to be in the room. @throws ProtocolError `M_NOT_FOUND` */
  room(by: Requester, roomId: RoomId, reason: string): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` for a user of whom this server has never heard */
  user(by: Requester, userId: UserId, reason: string): Promise<void>
}

export function createReports({
  db,
  clock,
  users,
  registry,
  access,
}: {
  readonly db: Database
  readonly clock: Clock
  readonly users: Pick<Users, 'find'>
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly access: Pick<RoomAccess, 'find'>
}): Reports {
  async function keep(by: Requester, report: Omit<NewReport, 'reporterNid' | 'receivedAt'>): Promise<void> {
    const whole = { ...report, reporterNid: by.userNid, receivedAt: clock.now() }
    await db.tx((tx) => insertReport(tx, whole, MAX_REPORTS_PER_USER))
  }

  return {
    async event(by, roomId, eventId, { reason, score }) {
      checkReason(reason ?? '')
      const seen = await access.find(by, roomId, eventId)
      if (!seen?.room.localMembers.has(by.userNid)) {
        throw new ProtocolError('M_NOT_FOUND', 'There is no such event, or you are not in its room.')
      }
      const { room, event } = seen
      const eventJson = event.json.length <= MAX_REPORTED_EVENT_CHARS ? event.json : undefined
      await keep(by, {
        kind: 'event',
        reason,
        score,
        roomNid: room.nid,
        roomId,
        eventId,
        targetUser: event.sender,
        eventJson,
      })
    },

    async room(by, roomId, reason) {
      checkReason(reason)
      const room = await registry.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      await keep(by, { kind: 'room', reason, roomNid: room.nid, roomId })
    },

    async user(by, userId, reason) {
      checkReason(reason)
      if ((await users.find(userId)) === undefined) {
        throw new ProtocolError('M_NOT_FOUND', 'This server knows no user of that id.')
      }
      await keep(by, { kind: 'user', reason, targetUser: userId })
    },
  }
}

const checkReason = (reason: string) => checkText('reason', reason, MAX_REPORT_REASON_CHARS)
