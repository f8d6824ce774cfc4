import { ProtocolError } from '../../core/errors.ts'
import { canonicalAliasOf, roomNameOf } from '../../core/event/content.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import { deleteReport, findReport, listReports, type ReportKind, type ReportRow } from '../../store/rooms/reports.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'

export interface ReportPage {
  readonly from: number
  readonly limit: number
  readonly isDescending: boolean
  /** Only reports in which these ids contain these texts. */
  readonly reporter?: string | undefined
  readonly roomId?: string | undefined
  readonly targetUser?: string | undefined
}

/** The reports that users made. Entries have the form that common administration tools read. */
export interface ReportDesk {
  /** One report, as lists show it. */
  entry(kind: ReportKind, row: ReportRow): Promise<JsonObject>
  list(kind: ReportKind, page: ReportPage): Promise<{ reports: JsonObject[]; total: number; next_token?: number }>
  /** With the event itself, if it is about one. @throws ProtocolError `M_NOT_FOUND` */
  get(kind: ReportKind, id: number): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` */
  remove(kind: ReportKind, id: number): Promise<void>
}

export function createReportDesk({
  db,
  registry,
  events,
}: {
  readonly db: Database
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly events: Pick<EventCache, 'getById'>
}): ReportDesk {
  const missing = () => new ProtocolError('M_NOT_FOUND', 'There is no such report.')

  async function ofRoom({ room_id: roomId }: ReportRow): Promise<JsonObject> {
    const room = roomId === null ? undefined : await registry.get(roomId)
    const [name, alias] = await Promise.all([
      room?.stateEvent('m.room.name', ''),
      room?.stateEvent('m.room.canonical_alias', ''),
    ])
    return { room_id: roomId, name: roomNameOf(name) ?? null, canonical_alias: canonicalAliasOf(alias) ?? null }
  }

  async function entryOf(kind: ReportKind, row: ReportRow): Promise<JsonObject> {
    const { report_nid: id, received_at: received_ts, reporter: user_id, reason } = row
    const common = { id, received_ts, user_id, reason }
    if (kind === 'user') return { ...common, target_user_id: row.target_user }
    const room = await ofRoom(row)
    if (kind === 'room') return { ...common, ...room }
    return { ...common, ...room, event_id: row.event_id, score: row.score, sender: row.target_user }
  }

  return {
    entry: entryOf,
    async list(kind, { from, limit, isDescending, reporter, roomId, targetUser }) {
      const { rows, total } = await listReports(db, { kind, from, limit, isDescending, reporter, roomId, targetUser })
      const reports: JsonObject[] = []
      for (const row of rows) reports.push(await entryOf(kind, row))
      const next = from + rows.length
      return { reports, total, ...(next < total && rows.length > 0 && { next_token: next }) }
    },
    async get(kind, id) {
      const row = await findReport(db, kind, id)
      if (row === undefined) throw missing()
      const entry = await entryOf(kind, row)
      const event = row.event_id === null ? undefined : await events.getById(row.event_id)
      return kind === 'event' ? { ...entry, event_json: event ? { ...event.pdu } : null } : entry
    },
    async remove(kind, id) {
      if (!(await db.tx((tx) => deleteReport(tx, kind, id)))) throw missing()
    },
  }
}
