import pg from 'pg'
import { makeCommunity } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget } from '../target.ts'

export const BENCHMARK = 'user-directory'
const USERS = 100_000
const SEARCHES = 300
/** The searcher shares one room with so many of them; one in ten is in a room that anyone may join. */
const COMPANY = 1_000
const SYLLABLES = ['ba', 'ce', 'di', 'fo', 'gu', 'ha', 'je', 'ki', 'lo', 'mu', 'na', 'pe', 'ri', 'so', 'tu', 'wa']

/** Searches of users by name among 100,000 of them. */
export async function measureUserDirectory(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const connection = target.database()
    if (connection === undefined) return []
    const { api, people, roomIds } = await makeCommunity(target, { people: 2, rooms: 2, isIn: () => true })
    const { token } = people[0]!
    await fill(connection, roomIds)
    const syllable = (count: number) => SYLLABLES[count % SYLLABLES.length]!
    const terms: readonly [variant: string, term: (count: number) => string][] = [
      ['one letter', (count) => syllable(count)[0]!],
      ['three letters', (count) => `${syllable(count)}${syllable(count >> 4)[0]}`],
      ['a name', (count) => `${syllable(count)}${syllable(count >> 4)}${syllable(7 * count)}`],
      [
        'two names',
        (count) => `${syllable(count)}${syllable(count >> 4)} ${syllable(5 * count)}${syllable(3 * count)}`,
      ],
    ]
    const measured: Measurement[] = []
    for (const [variant, term] of terms) {
      const values: number[] = []
      let results = 0
      const { serverCpuMs, postgresCpuMs } = await costOf(target, async () => {
        for (let count = 0; count < SEARCHES; count++) {
          const begun = now()
          const answer = await api.call('POST', '/user_directory/search', { token, body: { search_term: term(count) } })
          values.push(now() - begun)
          results += answer.results.length
        }
        return SEARCHES
      })
      const p95 = values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.95)]!
      const note = `p95 ${p95.toFixed(1)} ms, ${(results / SEARCHES).toFixed(1)} results`
      measured.push(
        measurement({
          ...{ benchmark: BENCHMARK, variant: `${variant}, 100,000 users`, serverCpuMs, postgresCpuMs, note },
          ...latenciesOf(values),
        }),
      )
    }
    await api.close()
    return measured
  } finally {
    await target.close()
  }
}

/** Makes users with two names of three syllables each. */
async function fill(connection: pg.ClientConfig, roomIds: readonly string[]): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    for (const statement of FILL) await client.query(statement, statement.includes('$1') ? [USERS, SYLLABLES] : [])
    const join = `INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
      SELECT user_nid, (SELECT room_nid FROM room WHERE room_id = $1), 'join', 1 FROM made WHERE n % $2 = 0`
    await client.query(join, [roomIds[0], USERS / COMPANY])
    await client.query(join, [roomIds[1], 10])
    await client.query('INSERT INTO open_room SELECT room_nid FROM room WHERE room_id = $1 ON CONFLICT DO NOTHING', [
      roomIds[1],
    ])
    await client.query(
      `UPDATE room_member SET membership = 'leave' FROM room
      WHERE room.room_nid = room_member.room_nid AND room_id = $1 AND NOT user_nid IN (SELECT user_nid FROM made)`,
      [roomIds[1]],
    )
    await client.query('ANALYZE')
  } finally {
    await client.end()
  }
}

const FILL = [
  `CREATE TEMPORARY TABLE made AS SELECT n, name[1] || name[2] || name[3] AS first, name[4] || name[5] || name[6] AS last, 0::bigint AS user_nid
   FROM (SELECT n, (SELECT array_agg(($2::text[])[1 + floor(random() * 16)::int]) FROM generate_series(1, 6) WHERE n > 0) AS name
     FROM generate_series(1, $1::int) AS n) AS drawn`,
  `INSERT INTO matrix_user (user_id) SELECT '@' || first || n || ':localhost' FROM made`,
  `UPDATE made SET user_nid = u.user_nid FROM matrix_user u WHERE user_id = '@' || first || n || ':localhost'`,
  `INSERT INTO account (user_nid, created_at) SELECT user_nid, 0 FROM made`,
  `INSERT INTO directory_user (user_nid, display_name, event_nid) SELECT user_nid, initcap(first) || ' ' || initcap(last), 0 FROM made`,
  `INSERT INTO directory_word (word, user_nid) SELECT DISTINCT word, user_nid FROM made, unnest(ARRAY[first || n, first, last]) AS word`,
]
