import { hash } from 'node:crypto'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { isRoomAlias, isUserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { findTaken, setTaken } from '../../store/appservices/hosted-transactions.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { HostedService } from './hosted-service.ts'

/** A service in this process, as a caller with its `hs_token` uses it (application service API, "Application Services"). */
export interface HostedAppservice {
  readonly id: string
  /**
   * Processes a transaction once, even across a crash.
   * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM` for other events under the id of a processed one, and the service's own errors
   */
  take(txnId: string, body: JsonObject): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  requireUser(userId: string): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  requireAlias(alias: string): Promise<void>
  /** @throws ProtocolError `M_NOT_FOUND` */
  protocol(name: string): Promise<JsonObject>
  search(kind: 'user' | 'location', protocol: string, fields: URLSearchParams): Promise<JsonObject[]>
  lookUp(kind: 'user' | 'location', id: string): Promise<JsonObject[]>
}

/** Gives a hosted service the form in which the server calls it. */
export function hostedAppservice(
  deps: { db: Database; clock: Clock; log: Logger },
  id: string,
  service: HostedService,
): HostedAppservice {
  const { db, clock, log } = deps
  const byService = createKeyedQueue<string>()
  const absent = (what: string) => new ProtocolError('M_NOT_FOUND', `${id} has no such ${what}.`)
  return {
    id,
    take: (txnId, body) =>
      byService.run(id, async () => {
        const { events, ephemeral = [], ...others } = body
        if (!areObjects(events) || !areObjects(ephemeral)) {
          throw new ProtocolError('M_BAD_JSON', "Keys 'events' and 'ephemeral' must be lists of events.")
        }
        const digest = digestOf(events)
        const taken = await findTaken(db, id, txnId)
        if (taken !== undefined && taken.digest?.equals(digest) === false) {
          log.warn(
            { appservice: id, txn_id: txnId },
            'other events came under the id of a transaction that was already processed',
          )
          throw new ProtocolError(
            'M_INVALID_PARAM',
            `Transaction ${txnId} held other events before. Give these an id of their own.`,
          )
        }
        if (taken !== undefined) return
        await service.events(events, ephemeral, others)
        await db.tx((tx) => setTaken(tx, { appserviceId: id, txnId, digest }, clock.now()))
      }),
    async requireUser(userId) {
      if (!isUserId(userId) || !(await service.findUser?.(userId))) throw absent('user')
    },
    async requireAlias(alias) {
      if (!isRoomAlias(alias) || !(await service.findAlias?.(alias))) throw absent('alias')
    },
    async protocol(name) {
      const found = await service.protocol?.(name)
      if (found === undefined) throw absent('protocol')
      return found
    },
    search: async (kind, protocol, fields) => (await service.search?.(kind, protocol, fields)) ?? [],
    lookUp: async (kind, key) => (await service.lookUp?.(kind, key)) ?? [],
  }
}

/** Identifies a transaction's events. Their JSON may differ when it is repeated, but this does not. */
function digestOf(events: readonly JsonObject[]): Buffer {
  return hash('sha256', JSON.stringify(events.map((event) => event.event_id ?? event)), 'buffer')
}

function areObjects(value: JsonValue | undefined): value is JsonObject[] {
  return Array.isArray(value) && value.every(isObject)
}
