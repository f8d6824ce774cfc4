import type { Reader } from '../db/db.ts'

// Tables read: room_deletion, history_purge, user_redaction, room

export interface ScheduledTask {
  readonly id: string
  readonly action: string
  /** scheduled, active, complete, failed */
  readonly status: string
  readonly timestamp_ms: number
  /** The room or user that it is about. */
  readonly resource_id: string | null
  /** How much is done. */
  readonly done: number
  readonly error: string | null
}

export interface TaskQuery {
  readonly action: string | undefined
  readonly resourceId: string | undefined
  readonly status: string | undefined
  /** Only tasks that began before this time (milliseconds). */
  readonly before: number | undefined
}

const STATUS = `CASE WHEN ended_at IS NULL THEN 'active' WHEN error IS NULL THEN 'complete' ELSE 'failed' END`

/** The tasks that operators have begun, newest first. They are kept for a week after their end. */
export function listScheduledTasks(reader: Reader, query: TaskQuery, atMost: number): Promise<ScheduledTask[]> {
  return reader.query<ScheduledTask>(
    `SELECT * FROM (
       SELECT deletion_id AS id, CASE WHEN (request::json ->> 'purge')::boolean THEN 'shutdown_and_purge_room' ELSE 'shutdown_room' END
         AS action, status, asked_at AS timestamp_ms, room_id AS resource_id, removed AS done, error FROM room_deletion
       UNION ALL
       SELECT purge_id, 'purge_history', ${STATUS}, asked_at, room_id, removed, error
         FROM history_purge LEFT JOIN room USING (room_nid)
       UNION ALL
       SELECT redaction_id, 'redact_all_events', ${STATUS}, asked_at, user_id, redacted, error FROM user_redaction
     ) task
     WHERE ($1::text IS NULL OR action = $1) AND ($2::text IS NULL OR resource_id = $2) AND ($3::text IS NULL OR status = $3)
       AND ($4::bigint IS NULL OR timestamp_ms < $4)
     ORDER BY timestamp_ms DESC, id LIMIT $5`,
    [query.action ?? null, query.resourceId ?? null, query.status ?? null, query.before ?? null, atMost],
  )
}
