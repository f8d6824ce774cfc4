import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: appservice_news; read: account, matrix_user, room_member, to_device

export type NewsKind = 'message' | 'receipt' | 'presence' | 'device_list' | 'keys'

/** Something new for a service. It replaces older news of the same kind and name. */
export interface News {
  readonly appserviceId: string
  readonly kind: Exclude<NewsKind, 'message'>
  readonly name: string
  /** JSON of an event, or ''. */
  readonly content: string
}

export interface NewsRow {
  readonly nid: number
  readonly kind: NewsKind
  readonly name: string
  readonly content: string
}

/** Must run in a commit of the ledger, like all writes here. */
export async function putNews(tx: Tx, news: readonly News[], now: number): Promise<void> {
  await tx.query(
    `INSERT INTO appservice_news (appservice_id, kind, name, content, noted_at)
     SELECT DISTINCT ON (1, 2, 3) appservice_id, kind, name, content, $5::bigint
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS n (appservice_id, kind, name, content, place)
     ORDER BY 1, 2, 3, place DESC
     ON CONFLICT (appservice_id, kind, name) WHERE kind <> 'message'
     DO UPDATE SET nid = DEFAULT, content = excluded.content, noted_at = excluded.noted_at`,
    [
      news.map((one) => one.appserviceId),
      news.map((one) => one.kind),
      news.map((one) => one.name),
      news.map((one) => one.content),
      now,
    ],
  )
}

/** Records that a user's devices changed, for services. */
export async function putDeviceListNews(tx: Tx, appserviceIds: readonly string[], userNid: number, now: number) {
  await tx.query(
    `INSERT INTO appservice_news (appservice_id, kind, name, content, noted_at)
     SELECT id, 'device_list', user_id, '', $3 FROM matrix_user CROSS JOIN unnest($1::text[]) AS s (id) WHERE user_nid = $2
     ON CONFLICT (appservice_id, kind, name) WHERE kind <> 'message' DO UPDATE SET nid = DEFAULT, noted_at = excluded.noted_at`,
    [appserviceIds, userNid, now],
  )
}

/** A service and a user whose messages it takes. */
export interface MessageTaker {
  readonly appserviceId: string
  readonly userId: UserId
  /** The account is the service's own and nobody else fetches its messages: the inboxes of its devices stay empty. */
  readonly isOnly: boolean
}

/** Copies or moves the messages of one ledger position to the services that take them. */
export async function takeMessages(
  tx: Tx,
  takers: readonly MessageTaker[],
  position: number,
  now: number,
): Promise<void> {
  await tx.query(
    `WITH taken AS MATERIALIZED (
       SELECT w.id, w.is_only, u.user_id, t.* FROM unnest($1::text[], $2::text[], $3::boolean[]) AS w (id, user_id, is_only)
       JOIN matrix_user u ON u.user_id = w.user_id JOIN to_device t USING (user_nid) WHERE t.position = $4
     ), moved AS (
       DELETE FROM to_device t USING taken, account a
       WHERE (t.user_nid, t.device_id, t.position, t.is_to_all) = (taken.user_nid, taken.device_id, taken.position, taken.is_to_all)
         AND a.user_nid = taken.user_nid AND taken.is_only AND a.appservice_id = taken.id
     )
     INSERT INTO appservice_news (appservice_id, kind, name, content, noted_at)
     SELECT id, 'message', sender, json_build_object('type', type, 'sender', sender, 'to_user_id', user_id,
       'to_device_id', device_id, 'content', content::json)::text, $5 FROM taken ORDER BY user_nid, device_id, is_to_all`,
    [
      takers.map(({ appserviceId }) => appserviceId),
      takers.map(({ userId }) => userId),
      takers.map(({ isOnly }) => isOnly),
      position,
      now,
    ],
  )
}

/** The news for a service after a number, in order. */
export function getNews(reader: Reader, appserviceId: string, after: number, limit: number): Promise<NewsRow[]> {
  return reader.query(
    'SELECT nid, kind, name, content FROM appservice_news WHERE appservice_id = $1 AND nid > $2 ORDER BY nid LIMIT $3',
    [appserviceId, after, limit],
  )
}

/** Removes the news that a service has acknowledged. */
export async function removeNews(tx: Tx, appserviceId: string, upTo: number): Promise<void> {
  await tx.query('DELETE FROM appservice_news WHERE appservice_id = $1 AND nid <= $2', [appserviceId, upTo])
}

/**
 * Keeps at most `keep` news of each kind for a service. The oldest go first. Of messages, those of the sender with most messages go first,
 * so that a flood displaces itself.
 */
export async function trimNews(tx: Tx, appserviceId: string, keep: number): Promise<void> {
  await tx.query(
    `WITH waiting AS (
       SELECT nid, kind, row_number() OVER (PARTITION BY kind, name ORDER BY nid DESC) AS of_name
       FROM appservice_news WHERE appservice_id = $1
     ), ranked AS (
       SELECT nid, row_number() OVER (PARTITION BY kind ORDER BY of_name, nid DESC) AS place FROM waiting
     )
     DELETE FROM appservice_news n USING ranked r WHERE n.appservice_id = $1 AND n.nid = r.nid AND r.place > $2`,
    [appserviceId, keep],
  )
}

/** Removes some news from before a time, and gives how many. */
export async function forgetOldNews(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM appservice_news WHERE ctid = ANY(ARRAY(SELECT ctid FROM appservice_news WHERE noted_at < $1 LIMIT $2))
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** Those of some services that have an account which is this user, or shares a room with the user. */
export async function servicesBeside(
  reader: Reader,
  userNid: number,
  appserviceIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `SELECT id FROM unnest($2::text[]) AS s (id)
     WHERE EXISTS (SELECT FROM account WHERE user_nid = $1 AND appservice_id = s.id)
        OR EXISTS (
          SELECT FROM room_member m JOIN room_member g USING (room_nid) JOIN account a ON a.user_nid = g.user_nid
          WHERE m.user_nid = $1 AND m.membership = 'join' AND g.membership = 'join' AND a.appservice_id = s.id
        )`,
    [userNid, appserviceIds],
  )
  return rows.map(({ id }) => id)
}

/** Those of some users who are the service's own, or share a room with one of its own users. */
export async function usersBeside(
  reader: Reader,
  appserviceId: string,
  userIds: readonly UserId[],
): Promise<Set<UserId>> {
  const rows = await reader.query<{ user_id: UserId }>(
    `SELECT user_id FROM matrix_user u WHERE user_id = ANY($2::text[]) AND (
       EXISTS (SELECT FROM account a WHERE a.user_nid = u.user_nid AND a.appservice_id = $1)
       OR EXISTS (
         SELECT FROM room_member m JOIN room_member g USING (room_nid) JOIN account a ON a.user_nid = g.user_nid
         WHERE m.user_nid = u.user_nid AND m.membership = 'join' AND g.membership = 'join' AND a.appservice_id = $1
       ))`,
    [appserviceId, userIds],
  )
  return new Set(rows.map((row) => row.user_id))
}
