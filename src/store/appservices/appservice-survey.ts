import type { Reader } from '../db/db.ts'

// Tables: appservice_queue, event

export interface QueueSurvey {
  readonly appservice_id: string
  readonly failures: number
  readonly retry_at: number
  /** Whether a transaction waits for its answer. */
  readonly is_sending: boolean
  /** Events of this server since the last that the service has, as many as are counted; not all of them concern it. */
  readonly events_since: number
}

export function surveyQueues(reader: Reader, mostCounted: number): Promise<QueueSurvey[]> {
  return reader.query<QueueSurvey>(
    `SELECT appservice_id, failures, retry_at, body IS NOT NULL AS is_sending,
       (SELECT count(*) FROM (SELECT 1 FROM event WHERE event_nid > q.position LIMIT $1) newer) AS events_since
     FROM appservice_queue q`,
    [mostCounted],
  )
}
