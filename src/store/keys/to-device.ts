import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: to_device, to_device_txn, federation_message, device, matrix_user

/** A device of a user of this server. */
export interface DeviceKey {
  readonly userNid: number
  readonly deviceId: string
}

/** A message that waits for a device. */
export interface ToDeviceRow {
  readonly position: number
  readonly sender: UserId
  readonly type: string
  /** JSON */
  readonly content: string
}

/** One message of a call: for one device of a user, or (`*`) for all devices. */
export interface ToDeviceEntry {
  readonly userId: UserId
  readonly deviceId: string
  /** JSON */
  readonly content: string
}

export interface ToDeviceMessages {
  /** A user of this server or another. */
  readonly sender: UserId
  readonly type: string
  readonly entries: readonly ToDeviceEntry[]
  /** The most messages of one call, with `*` expanded to devices. */
  readonly maxMessages: number
  readonly maxBytes: number
}

/** Messages from a local device. */
export interface ToDeviceCall extends ToDeviceMessages {
  readonly from: DeviceKey
  readonly txnHash: string
  readonly sentAt: number
}

/** Messages from another server. */
export interface ReceivedToDevice extends ToDeviceMessages {
  readonly messageHash: Buffer
  readonly receivedAt: number
}

export interface SentToDevice {
  /** The call has too many messages; nothing was sent. */
  readonly isTooLarge: boolean
  /** False if the same call was made before; then nothing was sent either. */
  readonly isNew: boolean
  /** Who got something; a device may be in it twice. */
  readonly recipients: readonly DeviceKey[]
}

interface SentRow {
  readonly is_too_large: boolean
  readonly is_new: boolean
  readonly user_nid: number | null
  readonly device_id: string
}

/** Locks the devices, so that a concurrent removal happens either before this or after it, with the messages. */
const RECIPIENTS = `SELECT d.user_nid, d.device_id, w.device_id = '*' AS is_to_all, w.content
  FROM wanted w JOIN matrix_user USING (user_id) JOIN device d USING (user_nid)`

/**
 * @param txn an INSERT that returns a row if the call is new; `total` is the number of messages
 */
const sending = (txn: string) => `WITH wanted AS (
    SELECT * FROM unnest($3::text[], $4::text[], $5::text[]) AS wanted (user_id, device_id, content)
  ), named AS (
    ${RECIPIENTS} WHERE w.device_id <> '*' AND d.device_id = w.device_id FOR KEY SHARE OF d
  ), everyone AS (
    ${RECIPIENTS} WHERE w.device_id = '*' FOR KEY SHARE OF d
  ), recipient AS MATERIALIZED (
    SELECT * FROM named UNION ALL SELECT * FROM everyone
  ), total AS (
    SELECT count(*) > $6 OR coalesce(sum(octet_length(content)), 0) > $7 AS is_too_large FROM recipient
  ), txn AS (
    ${txn}
  ), sent AS (
    INSERT INTO to_device (user_nid, device_id, position, is_to_all, sender, type, content)
    SELECT r.user_nid, r.device_id, $8, r.is_to_all, $1, $2, r.content FROM recipient r, txn
    RETURNING user_nid, device_id
  )
  SELECT is_too_large, EXISTS (SELECT FROM txn) AS is_new, user_nid, device_id FROM total LEFT JOIN sent ON true`

const SEND = sending(`INSERT INTO to_device_txn (user_nid, device_id, txn_hash, created_ts)
    SELECT d.user_nid, d.device_id, $11, $12 FROM device d, total
    WHERE d.user_nid = $9 AND d.device_id = $10 AND NOT is_too_large FOR KEY SHARE OF d
    ON CONFLICT DO NOTHING RETURNING 1`)

const RECEIVE = sending(`INSERT INTO federation_message (message_hash, received_at)
    SELECT $9, $10 FROM total WHERE NOT is_too_large ON CONFLICT DO NOTHING RETURNING 1`)

/** Puts the messages of one call into the inboxes of those recipients that exist, all under one position. */
export function sendToDevices(tx: Tx, call: ToDeviceCall, position: number): Promise<SentToDevice> {
  const { from, txnHash, sentAt } = call
  return put(tx, SEND, call, position, [from.userNid, from.deviceId, txnHash, sentAt])
}

/** The same for messages from another server. */
export function receiveForDevices(tx: Tx, call: ReceivedToDevice, position: number): Promise<SentToDevice> {
  return put(tx, RECEIVE, call, position, [call.messageHash, call.receivedAt])
}

async function put(
  tx: Tx,
  statement: string,
  call: ToDeviceMessages,
  position: number,
  values: readonly unknown[],
): Promise<SentToDevice> {
  const { entries } = call
  const rows = await tx.query<SentRow>(statement, [
    call.sender,
    call.type,
    entries.map(({ userId }) => userId),
    entries.map(({ deviceId }) => deviceId),
    entries.map(({ content }) => content),
    call.maxMessages,
    call.maxBytes,
    position,
    ...values,
  ])
  const [{ is_too_large: isTooLarge, is_new: isNew }] = rows as [SentRow]
  const recipients = rows.flatMap(({ user_nid, device_id }) =>
    user_nid === null ? [] : { userNid: user_nid, deviceId: device_id },
  )
  return { isTooLarge, isNew, recipients }
}

/** The oldest and the newest message that wait for a device; undefined when none does. */
export async function inboxBounds(
  reader: Reader,
  { userNid, deviceId }: DeviceKey,
): Promise<{ oldest: number; newest: number } | undefined> {
  const [row] = await reader.query<{ oldest: number | null; newest: number }>(
    'SELECT min(position) AS oldest, max(position) AS newest FROM to_device WHERE user_nid = $1 AND device_id = $2',
    [userNid, deviceId],
  )
  return row?.oldest == null ? undefined : { oldest: row.oldest, newest: row.newest }
}

/** The oldest messages that wait for a device after ledger position `after`, up to and with `upTo`. */
export function toDeviceBetween(
  reader: Reader,
  { userNid, deviceId }: DeviceKey,
  after: number,
  upTo: number,
  limit: number,
): Promise<ToDeviceRow[]> {
  return reader.query<ToDeviceRow>(
    `SELECT position, sender, type, content FROM to_device
     WHERE user_nid = $1 AND device_id = $2 AND position > $3 AND position <= $4
     ORDER BY position, is_to_all LIMIT $5`,
    [userNid, deviceId, after, upTo, limit],
  )
}

/** Removes the messages of a device up to a position. */
export async function removeToDevice(tx: Tx, { userNid, deviceId }: DeviceKey, upTo: number): Promise<void> {
  await tx.query('DELETE FROM to_device WHERE user_nid = $1 AND device_id = $2 AND position <= $3', [
    userNid,
    deviceId,
    upTo,
  ])
}

/**
 * Keeps at most so many messages for a device, and bytes of their contents. The sender with most messages loses most, the oldest first, so
 * that a flood displaces itself.
 */
export async function trimToDevice(
  tx: Tx,
  { userNid, deviceId }: DeviceKey,
  keep: { readonly messages: number; readonly bytes: number },
): Promise<void> {
  await tx.query(
    `WITH waiting AS (
       SELECT ctid AS place, position, is_to_all, octet_length(content) AS bytes,
         row_number() OVER (PARTITION BY sender ORDER BY position DESC, is_to_all) AS of_sender
       FROM to_device WHERE user_nid = $1 AND device_id = $2
     ), counted AS (
       SELECT place, count(*) OVER best AS messages, sum(bytes) OVER best AS bytes FROM waiting
       WINDOW best AS (ORDER BY of_sender, position DESC, is_to_all ROWS UNBOUNDED PRECEDING)
     )
     DELETE FROM to_device WHERE ctid = ANY (ARRAY(SELECT place FROM counted WHERE messages > $3 OR bytes > $4))`,
    [userNid, deviceId, keep.messages, keep.bytes],
  )
}

/** Forgets some calls that were made before a time. Gives how many. */
export async function forgetToDeviceCalls(tx: Tx, before: number, limit: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM to_device_txn WHERE ctid = ANY(ARRAY(SELECT ctid FROM to_device_txn WHERE created_ts < $1 LIMIT $2))
     RETURNING user_nid`,
    [before, limit],
  )
  return rows.length
}
