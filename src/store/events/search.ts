import type { Reader, Tx } from '../db/db.ts'

// Tables: search_text, search_position, event

export type SearchKind = 'message' | 'name' | 'topic'
const KINDS: readonly SearchKind[] = ['message', 'name', 'topic']

/** The words of one event. */
export interface SearchText {
  readonly eventNid: number
  readonly roomNid: number
  readonly kind: SearchKind
  readonly ts: number
  /** The event that edited it, if these are the words of an edit. */
  readonly editNid: number | undefined
  readonly words: readonly string[]
}

/** No word holds this character, so that rooms, kinds and edits are no words. */
const MARK = '\u0001'
const roomMark = (roomNid: number) => `${MARK}r${roomNid}`
const kindMark = (kind: SearchKind) => `${MARK}${kind[0]}`
const editMark = (editNid: number) => `${MARK}e${editNid}`

/** Lexemes as Postgres reads them. */
const quoted = (lexeme: string) => `'${lexeme.replace(/[\\']/g, (character) => character + character)}'`

function vectorOf({ roomNid, kind, editNid, words }: SearchText): string {
  const edit = editNid === undefined ? [] : [editMark(editNid)]
  return [roomMark(roomNid), kindMark(kind), ...edit, ...words].map(quoted).join(' ')
}

/** Writes the words of events over those that were there, unless an event was redacted or removed meanwhile. */
export async function putSearchTexts(tx: Tx, texts: readonly SearchText[]): Promise<void> {
  if (texts.length === 0) return
  await tx.query(
    `INSERT INTO search_text (event_nid, ts, words)
     SELECT t.nid, t.ts, t.words::tsvector FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t (nid, ts, words)
     JOIN event ON event_nid = t.nid AND redacted_by IS NULL
     ON CONFLICT (event_nid) DO UPDATE SET words = EXCLUDED.words`,
    [texts.map(({ eventNid }) => eventNid), texts.map(({ ts }) => ts), texts.map(vectorOf)],
  )
}

export async function deleteSearchTexts(tx: Tx, eventNids: readonly number[]): Promise<void> {
  if (eventNids.length === 0) return
  await tx.query('DELETE FROM search_text WHERE event_nid = ANY ($1::bigint[])', [eventNids])
}

export async function setSearchPosition(tx: Tx, eventNid: number): Promise<void> {
  await tx.query('UPDATE search_position SET event_nid = $1', [eventNid])
}

export async function searchPosition(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ event_nid: number }>('SELECT event_nid FROM search_position', [])
  return row?.event_nid ?? 0
}

/** Begins the index anew. */
export async function clearSearch(tx: Tx): Promise<void> {
  await tx.query('TRUNCATE search_text', [])
  await setSearchPosition(tx, 0)
}

/** The numbers of the events that are searched by the words of these edits. */
export async function editedBy(reader: Reader, editNids: readonly number[]): Promise<number[]> {
  if (editNids.length === 0) return []
  const rows = await reader.query<{ event_nid: number }>(
    'SELECT event_nid FROM search_text WHERE words @@ $1::tsquery',
    [anyOf(editNids.map(editMark))],
  )
  return rows.map(({ event_nid }) => event_nid)
}

/** The next numbers of events that have a text or take one away, and the number up to which there are no others. */
export async function searchableAfter(
  reader: Reader,
  after: number,
  limit: number,
): Promise<{ readonly nids: readonly number[]; readonly upTo: number | undefined }> {
  const rows = await reader.query<{ event_nid: number; type: string }>(
    'SELECT event_nid, type FROM event WHERE event_nid > $1 ORDER BY event_nid LIMIT $2',
    [after, limit],
  )
  const nids = rows.filter(({ type }) => SEARCHED_TYPES.has(type)).map(({ event_nid }) => event_nid)
  return { nids, upTo: rows.at(-1)?.event_nid }
}

const SEARCHED_TYPES: ReadonlySet<string> = new Set([
  'm.room.message',
  'm.room.name',
  'm.room.topic',
  'm.room.redaction',
])

export interface SearchQuery {
  readonly words: readonly string[]
  readonly kinds: readonly SearchKind[]
  readonly roomNids: readonly number[]
  /** Only matches before this one, in the order of time. */
  readonly before: { readonly ts: number; readonly eventNid: number } | undefined
  readonly limit: number
}

export interface SearchMatch {
  readonly event_nid: number
  readonly ts: number
  /** In millionths; higher is better. */
  readonly rank: number
}

/** Remembers searches by their kinds and words. What it forgets costs one more look, and what it remembers changes no answer. */
export type FrequentSearches = Pick<Set<string>, 'has'> & { add(search: string): void }

/** More matches than this, in all rooms, are looked up in the index together with their rooms. */
const MAX_MATCHES_TRIED = 5_000

/**
 * The newest events of some rooms that have all of these words.
 *
 * Most words are rare: then it is fastest to find them in all rooms, and to look at the rooms of what was found. The index compares a room
 * with each event that has a word.
 *
 * @param inIndex whether the rooms are few enough to be looked up in the index
 * @param frequent searches of which is known that their words are frequent: they are not tried without the rooms first
 */
export async function findMatches(
  reader: Reader,
  query: SearchQuery,
  inIndex: boolean,
  frequent: FrequentSearches,
): Promise<SearchMatch[]> {
  const wanted = query.words.map(quoted).join(' & ')
  if (!inIndex) return find(reader, query, { inIndex: [wanted], afterwards: [] })
  const marks = anyOf(query.roomNids.map(roomMark))
  const search = `${query.kinds.join(' ')}: ${query.words.toSorted().join(' ')}`
  if (!frequent.has(search)) {
    const [first, ...others] = await find(reader, query, {
      inIndex: [wanted],
      afterwards: [marks],
      upTo: MAX_MATCHES_TRIED,
    })
    if (!first?.is_over) return first ? [first, ...others] : []
    frequent.add(search)
  }
  return find(reader, query, { inIndex: [wanted, marks], afterwards: [] })
}

const anyOf = (lexemes: readonly string[]) => `(${lexemes.map(quoted).join(' | ')})`

interface Look {
  /** What the index compares. */
  readonly inIndex: readonly string[]
  /** What is compared with each row that the index finds. */
  readonly afterwards: readonly string[]
  /** With more rows than this, the first row of the answer says that it is not all. */
  readonly upTo?: number
}

function find(
  reader: Reader,
  { words, kinds, roomNids, before, limit }: SearchQuery,
  { inIndex, afterwards, upTo }: Look,
): Promise<(SearchMatch & { readonly is_over: boolean | null })[]> {
  const kindMarks = kinds.length === KINDS.length ? [] : [anyOf(kinds.map(kindMark))]
  // Nearly everything is a message.
  const areRare = !kinds.includes('message')
  const filter = [...afterwards, ...(areRare ? [] : kindMarks)].join(' & ')
  const byRooms = inIndex.length + afterwards.length === 1
  return reader.query(
    `SELECT event_nid, ts, is_over, (1000000 * ts_rank(words, $2::tsquery))::int AS rank FROM (
       SELECT s.event_nid, s.ts, s.words, s.place > $6 AS is_over FROM (
         SELECT event_nid, ts, words, row_number() OVER () AS place FROM search_text
         WHERE words @@ $1::tsquery AND (ts, event_nid) < ($3::bigint, $4::bigint) LIMIT $6::int + 1) s
       ${byRooms ? 'JOIN event e ON e.event_nid = s.event_nid AND e.room_nid = ANY ($8)' : ''}
       WHERE s.place > $6 OR $7 = '' OR s.words @@ $7::tsquery
       ORDER BY is_over DESC, s.ts DESC, s.event_nid DESC LIMIT $5) AS newest
     ORDER BY is_over DESC, ts DESC, event_nid DESC`,
    [
      [...inIndex, ...(areRare ? kindMarks : [])].join(' & '),
      words.map(quoted).join(' & '),
      before?.ts ?? Number.MAX_SAFE_INTEGER,
      before?.eventNid ?? Number.MAX_SAFE_INTEGER,
      limit,
      upTo ?? null,
      filter,
      ...(byRooms ? [roomNids] : []),
    ],
  )
}
