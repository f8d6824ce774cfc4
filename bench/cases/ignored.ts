import pg from 'pg'
import { mapConcurrently } from '../../test/support/api.ts'
import { type Community, makeCommunity, newPrefix } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

/** What a message costs in a large room, by who of its members makes something of their own of it. */
export const BENCHMARK = 'ignored'
const MEMBERS = 1_000
const MESSAGES = 500
const WIDTH = 16

export async function measureIgnored(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const community = await makeCommunity(target, { people: MEMBERS + 1, rooms: 1, isIn: () => true })
    const { api, people } = community
    const measured = [await measure(target, community, 'whom nobody ignores')]
    const list = (ignored: readonly string[]) => ({
      ignored_users: Object.fromEntries(ignored.map((userId) => [userId, {}])),
    })
    const ignore = (ignored: readonly string[]) =>
      mapConcurrently(people.slice(1), WIDTH, ({ token, userId }) => {
        const path = `/user/${encodeURIComponent(userId)}/account_data/m.ignored_user_list`
        return api.call('PUT', path, { token, body: list(ignored) })
      })
    await ignore([people[1]!.userId, '@somebody:example.org'])
    measured.push(await measure(target, community, `where ${MEMBERS} ignore others`))
    await ignore([people[0]!.userId])
    measured.push(await measure(target, community, `whom ${MEMBERS} ignore`))
    await api.close()
    return measured
  } finally {
    await target.close()
  }
}

async function measure(target: Target, { api, people, roomIds }: Community, whose: string): Promise<Measurement> {
  const { token } = people[0]!
  const word = newPrefix()
  const path = `/rooms/${encodeURIComponent(roomIds[0]!)}/send/m.room.message/${word}`
  const body = { msgtype: 'm.text', body: 'hello' }
  // The first one reads the lists and rules of all members.
  await api.call('PUT', `${path}first`, { token, body })
  const before = await rowsWritten(target)
  const cost = await costOf(target, async () => {
    const numbers = Array.from({ length: MESSAGES }, (_, number) => number)
    await mapConcurrently(numbers, WIDTH, (number) => api.call('PUT', `${path}${number}`, { token, body }))
    return MESSAGES
  })
  const rows = ((await rowsWritten(target)) - before) / MESSAGES
  const note = `${rows.toFixed(1)} rows a message, its own among them`
  return measurement({ benchmark: BENCHMARK, variant: `a message of somebody ${whose}`, ...cost, note })
}

/** The rows of all tables. Nobody reads, so that none is removed. */
async function rowsWritten(target: Target): Promise<number> {
  const connection = target.database()
  if (connection === undefined) return Number.NaN
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      "SELECT quote_ident(relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    )
    const counts = tables.map(({ name }) => `(SELECT count(*) FROM ${name})`)
    const { rows } = await client.query<{ count: string }>(`SELECT ${counts.join(' + ')} AS count`)
    return Number(rows[0]?.count)
  } finally {
    await client.end()
  }
}
