import { contentPlace } from '../../core/event/member-texts.ts'
import type { Fence } from '../cluster/nodes.ts'
import type { Reader } from '../db/connection.ts'
import { type Column, Parameters } from '../db/parameters.ts'
import type {
  ChainWrite,
  ChangeWrite,
  EarlyRedactionWrite,
  EventBatch,
  EventWrite,
  GapFilled,
  GapWrite,
  HeadWrite,
  KeyWrite,
  MemberWrite,
  RedactionWrite,
  ResyncWrite,
  TxnWrite,
} from './event-writes.ts'
import { relationParts } from './relation-writes.ts'
import type { StickyWrite } from './sticky.ts'
import { unreadParts } from './unread-writes.ts'

// Tables: room, event, event_gap, early_redaction, state_key, state_change, state_chain, room_filling, room_member, client_txn, event_relation,
// thread, sticky_event, and those of unread counts; read: node

export interface BatchOutcome {
  /** The rooms whose head was at the expected version. Nothing of any other room was written. */
  readonly advanced: ReadonlySet<number>
  /** Transaction ids that were used before, each with its event; their rooms are not in `advanced`. */
  readonly repeated: readonly { readonly tokenNid: number; readonly hash: string; readonly eventId: string }[]
}

const sliceOf = (alias: string): string =>
  `convert_from(substring($1::bytea from ${alias}.start for ${alias}.size), 'UTF8')`

const IN_ADVANCED = 'room_nid IN (SELECT room_nid FROM advanced)'

const HEAD: readonly Column<HeadWrite>[] = [
  ['room_nid', 'bigint', (head) => head.roomNid],
  ['room_id', 'text', (head) => head.roomId],
  ['room_version', 'text', (head) => head.roomVersion],
  ['expected', 'bigint', (head) => head.expected],
  ['expected_nid', 'bigint', (head) => head.expectedNid],
  ['head_version', 'bigint', (head) => head.version],
  ['extremities', 'text', (head) => `{${head.extremities.join(',')}}`],
  ['merged', 'int', (head) => (head.merged === head.extremities.length ? null : head.merged)],
  ['depth', 'bigint', (head) => head.depth],
  ['last_pos', 'bigint', (head) => head.lastPos],
  ['last_nid', 'bigint', (head) => head.lastNid],
  ['notifiable', 'bigint', (head) => head.notifiable],
  ['state_chain', 'int', (head) => head.stateChain],
  ['state_seq', 'int', (head) => head.stateSeq],
]

const NOT_REPEATED = 'AND NOT EXISTS (SELECT FROM repeated WHERE repeated.room_nid = i.room_nid)'

/** @param holds whether this process still has its place among the nodes; asked once for the statement */
function headUpdate(withTxns: boolean, holds: string): string {
  return `moved AS (UPDATE room SET head_version = i.head_version, extremities = i.extremities::bigint[], merged = i.merged, depth = i.depth,
    last_pos = i.last_pos, last_nid = i.last_nid, notifiable = i.notifiable,
    state_chain = i.state_chain, state_seq = i.state_seq
    FROM input i WHERE room.room_nid = i.room_nid AND room.head_version = i.expected AND room.last_nid = i.expected_nid AND i.expected > 0 AND ${holds}
    ${withTxns ? NOT_REPEATED : ''} RETURNING room.room_nid)`
}

function headInsert(withTxns: boolean, holds: string): string {
  return `made AS (INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, merged, depth, last_pos, last_nid,
    notifiable, state_chain, state_seq)
    SELECT room_nid, room_id, room_version, head_version, extremities::bigint[], merged, depth, last_pos, last_nid,
    notifiable, state_chain, state_seq FROM input i WHERE i.expected = 0 AND ${holds} ${withTxns ? NOT_REPEATED : ''}
    ON CONFLICT DO NOTHING RETURNING room_nid)`
}

const EVENT: readonly Column<EventWrite>[] = [
  ['event_nid', 'bigint', (event) => event.event_nid],
  ['room_nid', 'bigint', (event) => event.room_nid],
  ['room_pos', 'bigint', (event) => event.room_pos],
  ['sender_nid', 'bigint', (event) => event.sender_nid],
  ['origin_server_ts', 'bigint', (event) => event.origin_server_ts],
  ['notifiable', 'bigint', (event) => event.notifiable],
  ['replaces_nid', 'bigint', (event) => event.replaces_nid],
  ['txn_token', 'bigint', (event) => event.txn_token],
  ['state_chain', 'int', (event) => event.state_chain],
  ['state_seq', 'int', (event) => event.state_seq],
  ['key_id', 'int', (event) => event.key_id],
  ['event_id', 'text', (event) => event.event_id],
  ['type', 'text', (event) => event.type],
  ['txn_id', 'text', (event) => event.txn_id],
  ['content_place', 'int', ({ json, origin_server_ts }) => contentPlace(json, origin_server_ts)],
  ['auth_nids', 'text', ({ auth_nids }) => auth_nids && `{${auth_nids.join(',')}}`],
]
/** Columns that only events of other servers have. */
const REMOTE_EVENT: readonly Column<EventWrite>[] = [
  ['redacted_by', 'bigint', (event) => event.redacted_by],
  ['auth_content', 'text', (event) => event.auth_content],
  ['standing', 'text', (event) => event.standing],
  ['reason', 'text', (event) => event.reason],
  ['stream_pos', 'bigint', (event) => event.stream_pos],
  ['current_chain', 'int', (event) => event.current_chain],
  ['current_seq', 'int', (event) => event.current_seq],
]

/** An event of another server may come after those that relate to it. Nobody knows the id of one of ours before it is written. */
const RELATED: Column<EventWrite> = ['is_related', 'boolean', (event) => event.has_relations]
const IS_RELATED = `e.room_pos IS NOT NULL AND (e.is_related OR EXISTS (SELECT FROM event_relation r
  WHERE r.room_nid = e.room_nid AND r.target_id = e.event_id))`

/** Each row's list of numbers is sent as text, because Postgres cannot unnest an array of lists into rows. */
const readColumn = (name: string): string => (name === 'auth_nids' ? 'auth_nids::bigint[]' : name)

function eventInsert(p: Parameters, events: readonly EventWrite[]): string {
  const isRemote = events.some((event) => REMOTE_EVENT.some(([, , read]) => read(event) !== null))
  const columns = isRemote ? [...EVENT, ...REMOTE_EVENT] : EVENT
  const names = columns.map(([name]) => name)
  const [related, isRelated] = isRemote ? [', has_relations', `, ${IS_RELATED}`] : ['', '']
  return `written AS (INSERT INTO event (${names.join(', ')}, json${related})
    SELECT ${names.map(readColumn).join(', ')}, ${sliceOf('e')}${isRelated}
    FROM ${p.table(events, 'e', [...columns, ...(isRemote ? [RELATED] : []), ...p.jsonOf(events)])} WHERE e.${IN_ADVANCED})`
}

const PLACE = new Set([
  'room_pos',
  'notifiable',
  'replaces_nid',
  'state_chain',
  'state_seq',
  'key_id',
  'content_place',
  'auth_nids',
])

function promotion(p: Parameters, events: readonly EventWrite[]): string {
  const columns = [...EVENT.filter(([name]) => PLACE.has(name)), ...REMOTE_EVENT]
  const identity = EVENT.filter(([name]) => name === 'event_nid' || name === 'room_nid')
  const places = columns.map(([name]) => `${name} = o.${readColumn(name)}`).join(', ')
  return `promoted AS (UPDATE event SET ${places}, json = ${sliceOf('o')}, has_relations = event.has_relations OR o.key_id IS NULL
    FROM ${p.table(events, 'o', [...identity, ...columns, ...p.jsonOf(events)])}
    WHERE event.event_nid = o.event_nid AND o.${IN_ADVANCED})`
}

const CHAIN: readonly Column<ChainWrite>[] = [
  ['room_nid', 'bigint', (chain) => chain.roomNid],
  ['chain', 'int', (chain) => chain.chain],
  ['parent_chain', 'int', (chain) => chain.parentChain],
  ['parent_seq', 'int', (chain) => chain.parentSeq],
]

const RESYNC: readonly Column<ResyncWrite>[] = [
  ...CHAIN,
  ['join_event_id', 'text', (resync) => resync.joinId],
  ['filled_at', 'bigint', (resync) => resync.position],
]

function resyncUpdates(p: Parameters, resynced: readonly ResyncWrite[]): string {
  return `resynced AS (SELECT * FROM ${p.table(resynced, 'r', RESYNC)} WHERE r.${IN_ADVANCED}),
  further AS (UPDATE state_chain c SET parent_seq = r.parent_seq FROM resynced r
    WHERE c.room_nid = r.room_nid AND c.chain = r.chain AND c.parent_chain = r.parent_chain),
  whole AS (UPDATE room_filling f SET filled_at = r.filled_at, servers = '{}', failures = 0, last_failure = NULL
    FROM resynced r WHERE f.room_nid = r.room_nid AND f.join_event_id = r.join_event_id)`
}

const GAP: readonly Column<GapWrite>[] = [
  ['room_nid', 'bigint', (gap) => gap.roomNid],
  ['missing_id', 'text', (gap) => gap.missingId],
  ['event_nid', 'bigint', (gap) => gap.eventNid],
]

const EARLY_REDACTION: readonly Column<EarlyRedactionWrite>[] = [
  ['room_nid', 'bigint', (early) => early.roomNid],
  ['target_id', 'text', (early) => early.targetId],
  ['redaction_nid', 'bigint', (early) => early.redactionNid],
]

function gapsFilled(p: Parameters, filled: readonly GapFilled[]): string {
  const columns: Column<GapFilled>[] = [
    ['room_nid', 'bigint', (gap) => gap.roomNid],
    ['missing_id', 'text', (gap) => gap.missingId],
  ]
  return `filled AS (DELETE FROM event_gap USING ${p.table(filled, 'f', columns)}
    WHERE event_gap.room_nid = f.room_nid AND event_gap.missing_id = f.missing_id AND f.${IN_ADVANCED})`
}

/** @param relates whether the batch also writes relations: these may be of the same events, and a statement updates a row once */
function redactionUpdate(p: Parameters, redactions: readonly RedactionWrite[], relates: boolean): string {
  const columns: Column<RedactionWrite>[] = [
    ['room_nid', 'bigint', (redaction) => redaction.roomNid],
    ['target_nid', 'bigint', (redaction) => redaction.targetNid],
    ['redaction_nid', 'bigint', (redaction) => redaction.redactionNid],
    ['auth_content', 'text', (redaction) => redaction.authContent],
    ...p.jsonOf(redactions),
  ]
  const related = relates ? ', has_relations = true' : ''
  return `redacted AS (UPDATE event SET redacted_by = r.redaction_nid, auth_content = r.auth_content, json = ${sliceOf('r')}, content_place = NULL${related}
    FROM ${p.table(redactions, 'r', columns)}
    WHERE event.event_nid = r.target_nid AND event.redacted_by IS NULL AND r.${IN_ADVANCED})`
}

/** An INSERT of rows without changes, as a CTE of this name. */
function plainInsert<Row>(
  p: Parameters,
  [cte, table]: readonly [cte: string, table: string],
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  onConflict = '',
): string {
  const names = columns.map(([name]) => name).join(', ')
  return `${cte} AS (INSERT INTO ${table} (${names}) SELECT ${names} FROM ${p.table(rows, 'n', columns)}
    WHERE n.${IN_ADVANCED} ${onConflict})`
}

const KEY: readonly Column<KeyWrite>[] = [
  ['room_nid', 'bigint', (key) => key.roomNid],
  ['key_id', 'int', (key) => key.keyId],
  ['type', 'text', (key) => key.type],
  ['state_key', 'text', (key) => key.stateKey],
]

const CHANGE: readonly Column<ChangeWrite>[] = [
  ['room_nid', 'bigint', (change) => change.roomNid],
  ['chain', 'int', (change) => change.chain],
  ['seq', 'int', (change) => change.seq],
  ['key_id', 'int', (change) => change.keyId],
  ['event_nid', 'bigint', (change) => change.eventNid],
]

const MEMBER: readonly Column<MemberWrite>[] = [
  ['user_nid', 'bigint', (member) => member.userNid],
  ['room_nid', 'bigint', (member) => member.roomNid],
  ['membership', 'text', (member) => member.membership],
  ['event_nid', 'bigint', (member) => member.eventNid],
  ['changed_at', 'bigint', (member) => (member.changedAt === member.eventNid ? null : member.changedAt)],
]
const MEMBER_CHANGES = `ON CONFLICT (user_nid, room_nid) DO UPDATE
  SET membership = EXCLUDED.membership, event_nid = EXCLUDED.event_nid, changed_at = EXCLUDED.changed_at, forgotten = false`

const STICKY: readonly Column<StickyWrite>[] = [
  ['event_nid', 'bigint', (sticky) => sticky.eventNid],
  ['room_nid', 'bigint', (sticky) => sticky.roomNid],
  ['expires_at', 'bigint', (sticky) => sticky.expiresAt],
]

const TXN: readonly Column<TxnWrite>[] = [
  ['token_nid', 'bigint', (txn) => txn.tokenNid],
  ['txn_hash', 'text', (txn) => txn.hash],
  ['room_nid', 'bigint', (txn) => txn.roomNid],
  ['event_nid', 'bigint', (txn) => txn.eventNid],
  ['ts', 'bigint', (txn) => txn.ts],
]

const EARLIER_TXN: readonly Column<TxnWrite & { readonly earlier: number }>[] = [
  ['room_nid', 'bigint', (txn) => txn.roomNid],
  ['token_nid', 'bigint', (txn) => txn.tokenNid],
  ['earlier_nid', 'bigint', (txn) => txn.earlier],
  ['txn_hash', 'text', (txn) => txn.hash],
]

function txnInput(p: Parameters, txns: readonly TxnWrite[]): string {
  const earlier = txns.flatMap((txn) => txn.earlierTokens.map((token) => ({ ...txn, earlier: token })))
  const before = () => `UNION ALL SELECT b.room_nid, b.token_nid, used.txn_hash, used.event_nid
    FROM ${p.table(earlier, 'b', EARLIER_TXN)} JOIN client_txn used ON used.token_nid = b.earlier_nid AND used.txn_hash = b.txn_hash`
  return `txn AS (SELECT * FROM ${p.table(txns, 't', TXN)}),
  repeated AS MATERIALIZED (SELECT txn.room_nid, used.token_nid, used.txn_hash, used.event_nid
    FROM txn JOIN client_txn used USING (token_nid, txn_hash) ${earlier.length > 0 ? before() : ''})`
}

const TXN_INSERT = `remembered AS (INSERT INTO client_txn (token_nid, txn_hash, event_nid, created_ts)
  SELECT token_nid, txn_hash, event_nid, ts FROM txn WHERE txn.${IN_ADVANCED})`

/**
 * Writes a batch in one statement, so in one transaction and one fsync.
 *
 * Nothing is written if another process took the place of this one. A room is written only if its head is at the expected version and none
 * of its transaction ids was used before. Parts that the batch does
 * not have (for example, state changes) are left out of the statement.
 */
export async function writeEventBatch(
  connection: Reader,
  batch: EventBatch,
  { writer, fence }: Fence,
): Promise<BatchOutcome> {
  const p = new Parameters()
  const holds = `(SELECT fence FROM node WHERE node = ${p.value(writer)}::int) = ${p.value(fence)}::bigint`
  const withTxns = batch.txns.length > 0
  const makes = batch.heads.some((head) => head.expected === 0)
  const parts = [
    `input AS (SELECT * FROM ${p.table(batch.heads, 'i', HEAD)})`,
    ...(withTxns ? [txnInput(p, batch.txns)] : []),
    headUpdate(withTxns, holds),
    ...(makes ? [headInsert(withTxns, holds)] : []),
    `advanced AS (SELECT room_nid FROM moved${makes ? ' UNION ALL SELECT room_nid FROM made' : ''})`,
    ...(batch.events.length > 0 ? [eventInsert(p, batch.events)] : []),
    ...(batch.promoted.length > 0 ? [promotion(p, batch.promoted)] : []),
    ...(batch.chains.length > 0 ? [plainInsert(p, ['branched', 'state_chain'], batch.chains, CHAIN)] : []),
    ...(batch.resynced.length > 0 ? [resyncUpdates(p, batch.resynced)] : []),
    ...(batch.gaps.length > 0 ? [plainInsert(p, ['missing', 'event_gap'], batch.gaps, GAP)] : []),
    ...(batch.filled.length > 0 ? [gapsFilled(p, batch.filled)] : []),
    ...(batch.earlyRedactions.length > 0
      ? [plainInsert(p, ['early', 'early_redaction'], batch.earlyRedactions, EARLY_REDACTION)]
      : []),
    ...(batch.keys.length > 0 ? [plainInsert(p, ['keyed', 'state_key'], batch.keys, KEY)] : []),
    ...(batch.changes.length > 0 ? [plainInsert(p, ['changed', 'state_change'], batch.changes, CHANGE)] : []),
    ...(batch.members.length > 0
      ? [plainInsert(p, ['joined', 'room_member'], batch.members, MEMBER, MEMBER_CHANGES)]
      : []),
    ...(withTxns ? [TXN_INSERT] : []),
    ...(batch.redactions.length > 0 ? [redactionUpdate(p, batch.redactions, batch.relations.added.length > 0)] : []),
    ...relationParts(p, batch.relations),
    ...unreadParts(p, batch.unread),
    ...(batch.sticky.length > 0
      ? [plainInsert(p, ['stuck', 'sticky_event'], batch.sticky, STICKY, 'ON CONFLICT DO NOTHING')]
      : []),
    ...(p.holdsJson ? [] : ['no_json AS (SELECT $1::bytea)']),
  ]
  const text = `WITH ${parts.join(', ')}
    SELECT room_nid, NULL::bigint AS token_nid, NULL::text AS txn_hash, NULL::text AS event_id FROM advanced
    ${withTxns ? 'UNION ALL SELECT r.room_nid, r.token_nid, r.txn_hash, e.event_id FROM repeated r JOIN event e USING (event_nid)' : ''}`
  const rows = await connection.query<{
    room_nid: number
    token_nid: number | null
    txn_hash: string | null
    event_id: string | null
  }>(text, p.complete())
  return {
    advanced: new Set(rows.filter((row) => row.token_nid === null).map((row) => row.room_nid)),
    repeated: rows
      .filter((row) => row.token_nid !== null)
      .map((row) => ({ tokenNid: row.token_nid!, hash: row.txn_hash!, eventId: row.event_id! })),
  }
}
