import { hash, timingSafeEqual } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import type { JsonObject, JsonValue } from '../../core/json.ts'
import type { AppserviceAnswer, AppserviceRequest } from '../../outbound/appservice.ts'
import type { Appservice } from './appservice.ts'
import type { HostedAppservice } from './hosted.ts'
import type { AppserviceRegistry } from './registry.ts'

/** Calls the application services that run inside this process. */
export interface HostedAppservices {
  /** The service with this `hs_token`. */
  byToken(token: string): HostedAppservice | undefined
  /** Delivers a transaction to a hosted service; undefined if this one is not hosted. */
  deliver(service: Appservice, txnId: string, body: string): Promise<string | undefined> | undefined
  /** The answer of a hosted service; undefined if this one is not hosted. */
  ask(id: string, request: AppserviceRequest): Promise<AppserviceAnswer> | undefined
}

/** Those that run now. Rooms call them and they act in rooms, so this list is made before both, and each is added when it starts. */
export interface RunningAppservices extends HostedAppservices {
  has(id: string): boolean
  add(one: HostedAppservice): void
  /** Takes out those whose registration no longer says that they are hosted. */
  dropUnregistered(): void
}

export function createRunningAppservices(registry: Pick<AppserviceRegistry, 'all' | 'byId'>): RunningAppservices {
  const running = new Map<string, HostedAppservice>()
  return {
    has: (id) => running.has(id),
    add: (one) => void running.set(one.id, one),
    dropUnregistered() {
      for (const id of running.keys()) if (registry.byId(id)?.registration.hosted === undefined) running.delete(id)
    },
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
  }
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
