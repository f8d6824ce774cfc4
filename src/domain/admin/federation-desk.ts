import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import { surveys } from '../../store/db/whole-tables.ts'
import { isKnownServer, listKnownServers, listRoomsOfServer } from '../../store/federation/known-servers.ts'
import type { Outgoing } from '../federation/outgoing.ts'

export type DestinationOrder =
  | 'destination'
  | 'retry_last_ts'
  | 'retry_interval'
  | 'failure_ts'
  | 'last_successful_stream_ordering'

export interface DestinationPage {
  readonly from: number
  readonly limit: number
  readonly isDescending: boolean
  readonly order: DestinationOrder
  /** Only servers whose name contains this text. */
  readonly term: string | undefined
}

/** How sending to other servers goes, for operators. Functions throw `M_NOT_FOUND` for a server of which this one has never heard. */
export interface FederationDesk {
  list(page: DestinationPage): Promise<JsonObject>
  get(server: ServerName): Promise<JsonObject>
  /** The rooms that a server is in. */
  rooms(server: ServerName, page: Omit<DestinationPage, 'order' | 'term'>): Promise<JsonObject>
  /** Tries a server at once that did not answer. @throws ProtocolError `M_UNKNOWN` (400) if nothing is waiting to be tried again */
  retry(server: ServerName): Promise<void>
}

/** A server as administration tools read it, and what ours knows beyond that. */
interface DestinationView {
  readonly destination: ServerName
  readonly retry_last_ts: number
  readonly retry_interval: number
  readonly failure_ts: number | null
  readonly last_successful_stream_ordering: number | null
  readonly failures: number
  readonly retry_ts: number | null
  readonly last_error: string | null
  readonly events_waiting: number
  /** Event numbers between the newest event and the first that the server lacks: 0 if it has everything. */
  readonly lag: number
}

export function createFederationDesk({
  serverName,
  db,
  outgoing,
}: {
  readonly serverName: ServerName
  readonly db: Database
  readonly outgoing: Pick<Outgoing, 'statusOf' | 'servers' | 'handedOn' | 'firstUnsent' | 'heard'>
}): FederationDesk {
  function viewOf(server: ServerName): DestinationView {
    const status = outgoing.statusOf(server)
    const firstUnsent = outgoing.firstUnsent(server)
    const newest = Math.max(0, outgoing.handedOn())
    const { failures = 0, failingSince = null, triedAt = null, retryAt = 0, lastError = null } = status ?? {}
    return {
      destination: server,
      retry_last_ts: triedAt ?? 0,
      retry_interval: triedAt === null ? 0 : Math.max(0, retryAt - triedAt),
      failure_ts: failures === 0 ? null : failingSince,
      last_successful_stream_ordering: firstUnsent === undefined ? newest : firstUnsent - 1,
      failures,
      retry_ts: failures === 0 ? null : retryAt,
      last_error: lastError,
      events_waiting: status?.waiting ?? 0,
      lag: firstUnsent === undefined ? 0 : Math.max(1, newest - firstUnsent + 1),
    }
  }

  async function mustKnow(server: ServerName): Promise<void> {
    if (server !== serverName && (outgoing.statusOf(server) || (await isKnownServer(db, server)))) return
    throw new ProtocolError('M_NOT_FOUND', `This server has never heard of ${server}.`)
  }

  return {
    async list({ from, limit, isDescending, order, term }) {
      const names = new Set(await listKnownServers(surveys(db), serverName))
      for (const server of outgoing.servers()) names.add(server)
      const part = term?.toLowerCase()
      const found = [...names].filter((name) => part === undefined || name.includes(part)).map(viewOf)
      found.sort((a, b) => compare(a[order], b[order]) || compare(a.destination, b.destination))
      if (isDescending) found.reverse()
      const end = from + limit
      return {
        destinations: found.slice(from, end).map((view) => ({ ...view })),
        total: found.length,
        ...(end < found.length && { next_token: String(end) }),
      }
    },
    async get(server) {
      await mustKnow(server)
      return { ...viewOf(server) }
    },
    async rooms(server, page) {
      await mustKnow(server)
      const { rooms, total } = await listRoomsOfServer(surveys(db), server, page)
      const end = page.from + rooms.length
      return {
        rooms: rooms.map((room) => ({ ...room })),
        total,
        ...(end < total && rooms.length > 0 && { next_token: String(end) }),
      }
    },
    async retry(server) {
      await mustKnow(server)
      if ((outgoing.statusOf(server)?.failures ?? 0) === 0) {
        throw new ProtocolError('M_UNKNOWN', `${server} answers, or nothing is to be sent to it.`, { status: 400 })
      }
      outgoing.heard(server)
    },
  }
}

function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0
  if (a === null || b === null) return a === null ? -1 : 1
  return a < b ? -1 : 1
}
