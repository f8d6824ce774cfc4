import type { Config } from '../../config/schema.ts'
import { isWriterPresent, WRITER } from '../../store/db/writer-lock.ts'
import { withAdministration } from '../administration.ts'
import type { Host } from '../command.ts'
import { isDatabaseAtHand, withDatabase } from '../database.ts'
import { minute, table } from '../table.ts'

const AT = '/_synapse/admin/v1/federation/destinations'
const PAGE = 1_000

interface Destination {
  readonly destination: string
  readonly failures: number
  readonly failure_ts: number | null
  readonly retry_ts: number | null
  readonly last_error: string | null
  readonly events_waiting: number
  readonly lag: number
}

export interface StatusOptions {
  readonly json?: boolean | undefined
  readonly all?: boolean | undefined
}

/** How sending to other servers goes: those that lack something or do not answer, or one by its name. */
export async function showStatus(
  host: Host,
  config: Config,
  server: string | undefined,
  { json, all }: StatusOptions,
): Promise<string> {
  const found = await withAdministration(host, config, async (api): Promise<readonly Destination[]> => {
    if (server !== undefined) return [await api.call('GET', `${AT}/${encodeURIComponent(server)}`)]
    const destinations: Destination[] = []
    for (let from: string | undefined = '0'; from !== undefined; ) {
      const page: { destinations: Destination[]; next_token?: string } = await api.call(
        'GET',
        `${AT}?limit=${PAGE}&from=${from}`,
      )
      destinations.push(...page.destinations)
      from = page.next_token
    }
    return destinations
  })
  const shown = server !== undefined || all ? found : found.filter(({ failures, lag }) => failures > 0 || lag > 0)
  if (json) return JSON.stringify(shown, undefined, 2)
  if (shown.length === 0) return `All ${found.length} servers that this one knows have everything.`
  const rows = [...shown].sort((a, b) => b.failures - a.failures || b.lag - a.lag).map(rowOf)
  const heads = ['server', 'failures', 'since', 'next try', 'waiting', 'behind', 'last error']
  return `${table([heads, ...rows])}\n\n${shown.length} of ${found.length} servers.`
}

function rowOf(one: Destination): string[] {
  const nextTry = one.retry_ts === null ? '-' : one.retry_ts === 0 ? 'soon' : minute(one.retry_ts)
  return [
    one.destination,
    String(one.failures),
    minute(one.failure_ts),
    nextTry,
    String(one.events_waiting),
    String(one.lag),
    (one.last_error ?? '').slice(0, 100),
  ]
}

/** Has the running server try another one again at once. */
export async function resetServer(host: Host, config: Config, server: string): Promise<string> {
  const isRunning =
    (await isDatabaseAtHand(config)) && (await withDatabase(host, config, (db) => isWriterPresent(db, WRITER)))
  if (!isRunning) return 'No server runs now. When it starts, it tries every other server at once.'
  await withAdministration(host, config, (api) =>
    api.call('POST', `${AT}/${encodeURIComponent(server)}/reset_connection`, {}),
  )
  return `${server} is tried again now.`
}
