import pg from 'pg'
import { makeCommunity } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget } from '../target.ts'

export const BENCHMARK = 'search'
const MESSAGES = 1_000_000
const ROOMS = 10
const SEARCHES = 300
/** Words of a message, out of so many; a few are frequent, as in any language. */
const WORDS = 12
const VOCABULARY = 20_000

/** Searches among a million messages of ten rooms that the searcher is in. */
export async function measureSearch(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const connection = target.database()
    if (connection === undefined) return []
    const { api, people, roomIds } = await makeCommunity(target, { people: 2, rooms: ROOMS, isIn: () => true })
    const { token } = people[0]!
    for (const [index, room] of roomIds.entries()) {
      const body = { msgtype: 'm.text', body: `pattern ${index}` }
      await api.call('PUT', `/rooms/${encodeURIComponent(room)}/send/m.room.message/pattern`, { token, body })
    }
    const bytes = await fill(connection)
    const measured: Measurement[] = []
    for (const order_by of ['rank', 'recent'] as const) {
      const values: number[] = []
      const { serverCpuMs, postgresCpuMs } = await costOf(target, async () => {
        for (let count = 0; count < SEARCHES; count++) {
          const search_term = `word${frequent(count)} word${frequent(count * 7 + 3)}`
          const begun = now()
          await api.call('POST', '/search', {
            token,
            body: { search_categories: { room_events: { search_term, order_by } } },
          })
          values.push(now() - begun)
        }
        return SEARCHES
      })
      const p95 = values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)]!
      const note = `p95 ${p95.toFixed(1)} ms, ${bytes.toFixed(0)} bytes a message`
      const variant = `two words in ${MESSAGES.toLocaleString('en')} messages, by ${order_by}`
      measured.push(
        measurement({ benchmark: BENCHMARK, variant, ...latenciesOf(values), serverCpuMs, postgresCpuMs, note }),
      )
    }
    await api.close()
    return measured
  } finally {
    await target.close()
  }
}

/** Writes the messages, and gives the bytes that each takes in the index. */
async function fill(connection: pg.ClientConfig): Promise<number> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query(FILL, [MESSAGES, WORDS, VOCABULARY, ROOMS])
    for (const table of ['search_text', 'event']) await client.query(`ANALYZE ${table}`)
    const { rows } = await client.query<{ bytes: number }>(
      `SELECT pg_total_relation_size('search_text')::float8 / count(*) AS bytes FROM search_text`,
    )
    return rows[0]!.bytes
  } finally {
    await client.end()
  }
}

const frequent = (count: number) => (count * count * 31) % 400

/** Copies of one message per room, each with words of its own: word n is the rarer the larger n is. */
const FILL = `
  WITH pattern AS (
    SELECT DISTINCT ON (room_nid) *, row_number() OVER () AS number FROM event WHERE type = 'm.room.message' ORDER BY room_nid, event_nid
  ), numbered AS (SELECT *, dense_rank() OVER (ORDER BY room_nid) - 1 AS place FROM pattern), made AS (
    SELECT n, (SELECT array_agg(DISTINCT 'word' || floor($3 * power(random(), 3))::int) FROM generate_series(1, $2::int) WHERE n > 0) AS words
    FROM generate_series(1, $1::int) AS n
  ), copied AS (
    INSERT INTO event (event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, event_id, type, json)
    SELECT 100000000 + n, room_nid, 1000 + n, sender_nid, 1700000000000 + n * 1000, notifiable, state_chain, state_seq, '$copy' || n, type,
      replace(json, 'pattern', array_to_string(words, ' '))
    FROM made JOIN numbered ON place = n % $4::int RETURNING event_nid
  )
  INSERT INTO search_text (event_nid, ts, words)
  SELECT 100000000 + n, 1700000000000 + n * 1000, array_to_tsvector(words || (E'\\u0001r' || room_nid)::text || (E'\\u0001m')::text)
  FROM made JOIN numbered ON place = n % $4::int`
