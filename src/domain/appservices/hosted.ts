import { hash, timingSafeEqual } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { isRoomAlias, isUserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { AppserviceAnswer, AppserviceRequest } from '../../outbound/appservice.ts'
import { findTaken, setTaken } from '../../store/appservices/hosted-transactions.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import type { Appservice } from './appservice.ts'
import type { CreateHostedService, HostedHost, HostedService } from './hosted-service.ts'
import type { AppserviceRegistry } from './registry.ts'

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

/** The application services that run inside this process. */
export interface HostedAppservices {
  /** The service with this `hs_token`. */
  byToken(token: string): HostedAppservice | undefined
  /** Delivers a transaction to a hosted service; undefined if this one is not hosted. */
  deliver(service: Appservice, txnId: string, body: string): Promise<string | undefined> | undefined
  /** The answer of a hosted service; undefined if this one is not hosted. */
  ask(id: string, request: AppserviceRequest): Promise<AppserviceAnswer> | undefined
  /** Starts the registered ones that do not run yet. */
  start(hostOf: (service: Appservice) => HostedHost): Promise<void>
}

export function createHostedAppservices(deps: {
  readonly registry: AppserviceRegistry
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
}): HostedAppservices {
  const { registry, log } = deps
  const running = new Map<string, HostedAppservice>()
  let hostOf: ((service: Appservice) => HostedHost) | undefined

  async function startOne(service: Appservice, module: string): Promise<void> {
    const loaded = (await import(pathToFileURL(module).href)) as { createHostedService?: CreateHostedService }
    if (typeof loaded.createHostedService !== 'function') throw new Error(`${module} exports no createHostedService`)
    running.set(service.id, hosted(deps, service.id, loaded.createHostedService(hostOf!(service))))
    log.info({ appservice: service.id, module }, 'an application service runs in this process')
  }

  /** A service that fails to start does not affect the others or the server: its events wait for it. */
  async function startNew(): Promise<void> {
    if (hostOf === undefined) return
    for (const service of registry.all()) {
      const { hosted: module } = service.registration
      if (module === undefined || running.has(service.id)) continue
      await startOne(service, module).catch((err: unknown) =>
        log.error({ err, appservice: service.id }, 'a hosted application service could not be started'),
      )
    }
    for (const id of running.keys()) if (registry.byId(id)?.registration.hosted === undefined) running.delete(id)
  }

  return {
    byToken(token) {
      const digest = hash('sha256', token, 'buffer')
      const service = registry
        .all()
        .find(
          ({ id, registration }) =>
            running.has(id) && timingSafeEqual(hash('sha256', registration.hs_token, 'buffer'), digest),
        )
      return service && running.get(service.id)
    },
    deliver({ id, registration }, txnId, body) {
      const one = running.get(id)
      if (one === undefined) return registration.hosted === undefined ? undefined : Promise.resolve('it does not run')
      return one.take(txnId, JSON.parse(body) as JsonObject).then(
        () => undefined,
        (error: Error) => error.message,
      )
    },
    ask(id, request) {
      const one = running.get(id)
      return one && answerOf(one, request)
    },
    async start(how) {
      hostOf = how
      registry.onChange(() => void startNew())
      await startNew()
    },
  }
}

function hosted(
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
            'other events came under the id of a transaction that was worked through',
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

/** Answers a request that other services get over HTTP. */
async function answerOf(one: HostedAppservice, { path }: AppserviceRequest): Promise<AppserviceAnswer> {
  const { pathname, searchParams } = new URL(path, 'http://here')
  const [, area, kind, name] = pathname.split('/').map(decodeURIComponent)
  try {
    const body = await find(one, [area, kind, name], searchParams)
    return { kind: 'answered', status: 200, body, text: '' }
  } catch (error) {
    if (!(error instanceof ProtocolError)) return { kind: 'unanswered', isTimeout: false, detail: String(error) }
    return { kind: 'answered', status: error.status, body: error.toJSON(), text: error.message }
  }
}

async function find(
  one: HostedAppservice,
  [area, kind, name]: readonly (string | undefined)[],
  query: URLSearchParams,
): Promise<JsonValue> {
  if (area === 'users') await one.requireUser(kind ?? '')
  else if (area === 'rooms') await one.requireAlias(kind ?? '')
  else if (kind === 'protocol') return one.protocol(name ?? '')
  else if (kind !== 'user' && kind !== 'location') throw new ProtocolError('M_UNRECOGNIZED', 'There is no such path.')
  else if (name === undefined) return one.lookUp(kind, query.get(kind === 'user' ? 'userid' : 'alias') ?? '')
  else return one.search(kind, name, query)
  return {}
}
