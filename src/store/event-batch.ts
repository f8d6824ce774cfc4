import type { Reader } from './connection.ts'
import type { EventRow } from './events.ts'
import type { Membership } from './rooms.ts'

// Tables: room, event, state_key, state_change, room_member, client_txn, highlight

/** A room's head as a batch leaves it. */
export interface HeadWrite {
  readonly roomNid: number
  readonly roomId: string
  readonly roomVersion: string
  /** The version that the batch was built on; 0 makes the room. */
  readonly expected: number
  readonly version: number
  readonly extremities: readonly number[]
  readonly depth: number
  readonly lastPos: number
  readonly lastNid: number
  readonly notifiable: number
  readonly stateChain: number
  readonly stateSeq: number
}

/** A new event: its row, which no redaction has touched yet. */
export type EventWrite = Omit<EventRow, 'redacted_by'>

export interface KeyWrite {
  readonly roomNid: number
  readonly keyId: number
  readonly type: string
  readonly stateKey: string
}

export interface ChangeWrite {
  readonly roomNid: number
  readonly chain: number
  readonly seq: number
  readonly keyId: number
  readonly eventNid: number
}

export interface MemberWrite {
  readonly userNid: number
  readonly roomNid: number
  readonly membership: Membership
  readonly eventNid: number
}

export interface HighlightWrite {
  readonly userNid: number
  readonly roomNid: number
  readonly eventNid: number
}

export interface TxnWrite {
  readonly tokenNid: number
  readonly hash: string
  readonly roomNid: number
  readonly eventNid: number
  readonly ts: number
}

export interface RedactionWrite {
  readonly roomNid: number
  readonly targetNid: number
  readonly redactionNid: number
  /** The target's bytes with all gone that redaction removes. */
  readonly json: string
}

/** All that one commit writes. Within a batch a head, a member and a transaction id occur once. */
export interface EventBatch {
  readonly heads: readonly HeadWrite[]
  readonly events: readonly EventWrite[]
  readonly keys: readonly KeyWrite[]
  readonly changes: readonly ChangeWrite[]
  readonly members: readonly MemberWrite[]
  readonly highlights: readonly HighlightWrite[]
  readonly txns: readonly TxnWrite[]
  readonly redactions: readonly RedactionWrite[]
}

export interface BatchOutcome {
  /** The rooms whose head stood as expected. Nothing of any other room was written. */
  readonly advanced: ReadonlySet<number>
  /** Transaction ids that were used before, and the event each made; their rooms are not in `advanced`. */
  readonly repeated: readonly { readonly tokenNid: number; readonly hash: string; readonly eventId: string }[]
}

/** Binds columns of rows as array parameters, and their texts and bytes as slices of one binary parameter. */
class Parameters {
  readonly values: unknown[] = []
  readonly #bytes: Buffer[] = []
  #length = 0

  column<Row>(rows: readonly Row[], type: string, read: (row: Row) => unknown): string {
    this.values.push(rows.map(read))
    return `$${this.values.length}::${type}[]`
  }

  /** Lays texts into the binary parameter, where nothing is escaped. Gives the columns of their starts, 1-based as SQL counts, and lengths in bytes. */
  slices<Row>(rows: readonly Row[], read: (row: Row) => string): { starts: string; lengths: string } {
    const starts: number[] = []
    const lengths: number[] = []
    for (const row of rows) {
      const bytes = Buffer.from(read(row))
      starts.push(this.#length + 1)
      lengths.push(bytes.length)
      this.#bytes.push(bytes)
      this.#length += bytes.length
    }
    return {
      starts: this.column(starts, 'int', (start) => start),
      lengths: this.column(lengths, 'int', (length) => length),
    }
  }

  get bytes(): Buffer {
    return this.#bytes.length === 1 ? this.#bytes[0]! : Buffer.concat(this.#bytes, this.#length)
  }
}

const HEAD_COLUMNS =
  'room_nid, room_id, room_version, expected, head_version, extremities, depth, last_pos, last_nid, notifiable, state_chain, state_seq'

function headInput(p: Parameters, heads: readonly HeadWrite[]): string {
  return `input AS (SELECT * FROM unnest(
    ${p.column(heads, 'bigint', (h) => h.roomNid)}, ${p.column(heads, 'text', (h) => h.roomId)},
    ${p.column(heads, 'text', (h) => h.roomVersion)}, ${p.column(heads, 'bigint', (h) => h.expected)},
    ${p.column(heads, 'bigint', (h) => h.version)}, ${p.column(heads, 'text', (h) => `{${h.extremities.join(',')}}`)},
    ${p.column(heads, 'bigint', (h) => h.depth)}, ${p.column(heads, 'bigint', (h) => h.lastPos)},
    ${p.column(heads, 'bigint', (h) => h.lastNid)}, ${p.column(heads, 'bigint', (h) => h.notifiable)},
    ${p.column(heads, 'int', (h) => h.stateChain)}, ${p.column(heads, 'int', (h) => h.stateSeq)}
  ) AS i (${HEAD_COLUMNS}))`
}

const FREE_OF_REPEATS = 'NOT EXISTS (SELECT FROM repeated WHERE repeated.room_nid = i.room_nid)'

function headUpdate(withTxns: boolean): string {
  return `moved AS (UPDATE room SET head_version = i.head_version, extremities = i.extremities::bigint[], depth = i.depth,
    last_pos = i.last_pos, last_nid = i.last_nid, notifiable = i.notifiable,
    state_chain = i.state_chain, state_seq = i.state_seq
    FROM input i WHERE room.room_nid = i.room_nid AND room.head_version = i.expected AND i.expected > 0
    ${withTxns ? `AND ${FREE_OF_REPEATS}` : ''} RETURNING room.room_nid)`
}

function headInsert(withTxns: boolean): string {
  return `made AS (INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid,
    notifiable, state_chain, state_seq)
    SELECT room_nid, room_id, room_version, head_version, extremities::bigint[], depth, last_pos, last_nid,
    notifiable, state_chain, state_seq FROM input i WHERE i.expected = 0 ${withTxns ? `AND ${FREE_OF_REPEATS}` : ''}
    ON CONFLICT DO NOTHING RETURNING room_nid)`
}

function eventInsert(p: Parameters, blob: string, events: readonly EventWrite[]): string {
  const { starts, lengths } = p.slices(events, (e) => e.json)
  return `written AS (INSERT INTO event (event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, replaces_nid,
    txn_token, state_chain, state_seq, key_id, event_id, type, txn_id, json)
    SELECT nid, room_nid, pos, sender_nid, ts, notifiable, replaces_nid, txn_token, state_chain, state_seq, key_id,
    event_id, type, txn_id, convert_from(substring(${blob}::bytea from start for length), 'UTF8')
    FROM unnest(
    ${p.column(events, 'bigint', (e) => e.event_nid)}, ${p.column(events, 'bigint', (e) => e.room_nid)},
    ${p.column(events, 'bigint', (e) => e.room_pos)}, ${p.column(events, 'bigint', (e) => e.sender_nid)},
    ${p.column(events, 'bigint', (e) => e.origin_server_ts)}, ${p.column(events, 'bigint', (e) => e.notifiable)},
    ${p.column(events, 'bigint', (e) => e.replaces_nid)}, ${p.column(events, 'bigint', (e) => e.txn_token)},
    ${p.column(events, 'int', (e) => e.state_chain)}, ${p.column(events, 'int', (e) => e.state_seq)},
    ${p.column(events, 'int', (e) => e.key_id)}, ${p.column(events, 'text', (e) => e.event_id)},
    ${p.column(events, 'text', (e) => e.type)}, ${p.column(events, 'text', (e) => e.txn_id)},
    ${starts}, ${lengths}
    ) AS e (nid, room_nid, pos, sender_nid, ts, notifiable, replaces_nid, txn_token, state_chain, state_seq, key_id,
    event_id, type, txn_id, start, length)
    WHERE e.room_nid IN (SELECT room_nid FROM advanced))`
}

function keyInsert(p: Parameters, keys: readonly KeyWrite[]): string {
  return `keyed AS (INSERT INTO state_key (room_nid, key_id, type, state_key) SELECT * FROM unnest(
    ${p.column(keys, 'bigint', (k) => k.roomNid)}, ${p.column(keys, 'int', (k) => k.keyId)},
    ${p.column(keys, 'text', (k) => k.type)}, ${p.column(keys, 'text', (k) => k.stateKey)}
    ) AS k (room_nid, key_id, type, state_key) WHERE k.room_nid IN (SELECT room_nid FROM advanced))`
}

function changeInsert(p: Parameters, changes: readonly ChangeWrite[]): string {
  return `changed AS (INSERT INTO state_change (room_nid, chain, seq, key_id, event_nid) SELECT * FROM unnest(
    ${p.column(changes, 'bigint', (c) => c.roomNid)}, ${p.column(changes, 'int', (c) => c.chain)},
    ${p.column(changes, 'int', (c) => c.seq)}, ${p.column(changes, 'int', (c) => c.keyId)},
    ${p.column(changes, 'bigint', (c) => c.eventNid)}
    ) AS c (room_nid, chain, seq, key_id, event_nid) WHERE c.room_nid IN (SELECT room_nid FROM advanced))`
}

function memberUpsert(p: Parameters, members: readonly MemberWrite[]): string {
  return `joined AS (INSERT INTO room_member (user_nid, room_nid, membership, event_nid) SELECT * FROM unnest(
    ${p.column(members, 'bigint', (m) => m.userNid)}, ${p.column(members, 'bigint', (m) => m.roomNid)},
    ${p.column(members, 'text', (m) => m.membership)}, ${p.column(members, 'bigint', (m) => m.eventNid)}
    ) AS m (user_nid, room_nid, membership, event_nid) WHERE m.room_nid IN (SELECT room_nid FROM advanced)
    ON CONFLICT (user_nid, room_nid)
    DO UPDATE SET membership = EXCLUDED.membership, event_nid = EXCLUDED.event_nid, forgotten = false)`
}

function highlightInsert(p: Parameters, highlights: readonly HighlightWrite[]): string {
  return `noted AS (INSERT INTO highlight (user_nid, room_nid, event_nid) SELECT * FROM unnest(
    ${p.column(highlights, 'bigint', (h) => h.userNid)}, ${p.column(highlights, 'bigint', (h) => h.roomNid)},
    ${p.column(highlights, 'bigint', (h) => h.eventNid)}
    ) AS h (user_nid, room_nid, event_nid) WHERE h.room_nid IN (SELECT room_nid FROM advanced))`
}

const TXN_COLUMNS = 't (token_nid, txn_hash, room_nid, event_nid, ts)'

function txnInput(p: Parameters, txns: readonly TxnWrite[]): string {
  return `txn AS MATERIALIZED (SELECT * FROM unnest(
    ${p.column(txns, 'bigint', (t) => t.tokenNid)}, ${p.column(txns, 'text', (t) => t.hash)},
    ${p.column(txns, 'bigint', (t) => t.roomNid)}, ${p.column(txns, 'bigint', (t) => t.eventNid)},
    ${p.column(txns, 'bigint', (t) => t.ts)}) AS ${TXN_COLUMNS}),
  repeated AS MATERIALIZED (SELECT txn.room_nid, used.token_nid, used.txn_hash, used.event_nid
    FROM txn JOIN client_txn used USING (token_nid, txn_hash))`
}

const TXN_INSERT = `remembered AS (INSERT INTO client_txn (token_nid, txn_hash, event_nid, created_ts)
  SELECT token_nid, txn_hash, event_nid, ts FROM txn WHERE txn.room_nid IN (SELECT room_nid FROM advanced))`

function redactionUpdate(p: Parameters, blob: string, redactions: readonly RedactionWrite[]): string {
  const { starts, lengths } = p.slices(redactions, (r) => r.json)
  return `redacted AS (UPDATE event SET redacted_by = r.redaction_nid,
    json = convert_from(substring(${blob}::bytea from r.start for r.length), 'UTF8')
    FROM unnest(
    ${p.column(redactions, 'bigint', (r) => r.roomNid)}, ${p.column(redactions, 'bigint', (r) => r.targetNid)},
    ${p.column(redactions, 'bigint', (r) => r.redactionNid)}, ${starts}, ${lengths}
    ) AS r (room_nid, target_nid, redaction_nid, start, length)
    WHERE event.event_nid = r.target_nid AND event.redacted_by IS NULL
    AND r.room_nid IN (SELECT room_nid FROM advanced))`
}

/**
 * Writes a batch in one statement, so in one transaction and one fsync.
 *
 * A room takes part only when its head stands at the expected version and none of its transaction ids was used before;
 * what is left out of the batch (say, no state changes) is left out of the statement.
 */
export async function writeEventBatch(connection: Reader, batch: EventBatch): Promise<BatchOutcome> {
  const p = new Parameters()
  p.values.push(undefined)
  const withTxns = batch.txns.length > 0
  const makes = batch.heads.some((head) => head.expected === 0)
  const parts = [
    headInput(p, batch.heads),
    ...(withTxns ? [txnInput(p, batch.txns)] : []),
    headUpdate(withTxns),
    ...(makes ? [headInsert(withTxns)] : []),
    `advanced AS (SELECT room_nid FROM moved${makes ? ' UNION ALL SELECT room_nid FROM made' : ''})`,
    eventInsert(p, '$1', batch.events),
    ...(batch.keys.length > 0 ? [keyInsert(p, batch.keys)] : []),
    ...(batch.changes.length > 0 ? [changeInsert(p, batch.changes)] : []),
    ...(batch.members.length > 0 ? [memberUpsert(p, batch.members)] : []),
    ...(batch.highlights.length > 0 ? [highlightInsert(p, batch.highlights)] : []),
    ...(withTxns ? [TXN_INSERT] : []),
    ...(batch.redactions.length > 0 ? [redactionUpdate(p, '$1', batch.redactions)] : []),
  ]
  p.values[0] = p.bytes
  const text = `WITH ${parts.join(', ')}
    SELECT room_nid, NULL::bigint AS token_nid, NULL::text AS txn_hash, NULL::text AS event_id FROM advanced
    ${withTxns ? 'UNION ALL SELECT r.room_nid, r.token_nid, r.txn_hash, e.event_id FROM repeated r JOIN event e USING (event_nid)' : ''}`
  const rows = await connection.query<{
    room_nid: number
    token_nid: number | null
    txn_hash: string | null
    event_id: string | null
  }>(text, p.values)
  return {
    advanced: new Set(rows.filter((row) => row.token_nid === null).map((row) => row.room_nid)),
    repeated: rows
      .filter((row) => row.token_nid !== null)
      .map((row) => ({ tokenNid: row.token_nid!, hash: row.txn_hash!, eventId: row.event_id! })),
  }
}
