import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isRoomAlias, isUserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import type { AppserviceAnswer, AppserviceClient, AppserviceRequest } from '../../outbound/appservice.ts'
import type { Clock } from '../clock.ts'
import { MAX_THIRD_PARTY_RESULTS } from '../limits.ts'
import type { Appservice } from './appservice.ts'
import { targetOf, whyNot } from './delivery.ts'
import type { AppserviceRegistry } from './registry.ts'
import type { HostedAppservices } from './running-appservices.ts'

export type ThirdPartyKind = 'user' | 'location'

/** Third-party networks of all bridges together (client-server API, "Third-party Lookups"). */
export interface ThirdParty {
  /** The metadata of every protocol that a service provides. */
  protocols(): Promise<Readonly<Record<string, JsonObject>>>
  /** @throws ProtocolError `M_NOT_FOUND` for a protocol that no service provides */
  protocol(name: string): Promise<JsonObject>
  /** Users or locations of a network with these fields. @throws ProtocolError `M_NOT_FOUND` if there are none */
  search(kind: ThirdPartyKind, protocol: string, fields: URLSearchParams): Promise<JsonObject[]>
  /** What a user id or an alias stands for on the network. @throws ProtocolError `M_NOT_FOUND` if there is nothing */
  lookUp(kind: ThirdPartyKind, id: string): Promise<JsonObject[]>
}

const ASK_MS = 10_000
/** When a service is asked again for what it described, and where it gave no answer. */
const PROTOCOL_KEPT_MS = 60_000
const PROTOCOL_RETRY_MS = 20_000
/** How long a list of protocols waits for a service that has not described one yet. */
const PROTOCOL_WAIT_MS = 2_000

/** A protocol as a service described it last. */
interface Described {
  last: JsonObject | undefined
  asking: Promise<JsonObject | undefined> | undefined
  askAgainAt: number
}

/** @param deps.waitMs shorter in tests */
export function createThirdParty(deps: {
  readonly registry: AppserviceRegistry
  readonly hosted: HostedAppservices
  readonly client: AppserviceClient
  readonly clock: Clock
  readonly log: Logger
  readonly waitMs?: number
}): ThirdParty {
  const { registry, hosted, client, clock, log, waitMs = PROTOCOL_WAIT_MS } = deps
  const described = createCache<string, Described>(1_000)

  async function ask(
    service: Appservice,
    operation: AppserviceRequest['operation'],
    path: string,
  ): Promise<{ readonly body?: JsonValue | undefined; readonly isAnswered: boolean }> {
    const target = targetOf(service)
    // The path that was in use before the specification had it.
    const legacyPath = `/_matrix/app/unstable${path}`
    const request = { operation, path, legacyPath, timeoutMs: ASK_MS }
    const answer: AppserviceAnswer | undefined = await (hosted.ask(service.id, request) ??
      (target && client.ask(target, request)))
    if (answer?.kind === 'answered' && answer.status === 200) return { body: answer.body, isAnswered: true }
    if (answer !== undefined && !(answer.kind === 'answered' && answer.status === 404)) {
      log.info({ appservice: service.id, reason: whyNot(answer) }, 'an application service did not answer a lookup')
    }
    return { isAnswered: answer?.kind === 'answered' }
  }

  async function describe(service: Appservice, protocol: string) {
    const { body, isAnswered } = await ask(
      service,
      'GET A/thirdparty/protocol/{protocol}',
      `/thirdparty/protocol/${encodeURIComponent(protocol)}`,
    )
    // On the older path the metadata is under the protocol's name.
    const found = isObject(body) && isProtocol(body[protocol]) ? body[protocol] : body
    return { found: isProtocol(found) ? namedInstances(service, found) : undefined, isAnswered }
  }

  async function askAgain(known: Described, service: Appservice, protocol: string): Promise<JsonObject | undefined> {
    try {
      const { found, isAnswered } = await describe(service, protocol)
      if (isAnswered) known.last = found
      if (!isAnswered) known.askAgainAt = clock.now() + PROTOCOL_RETRY_MS
      else if (found !== undefined) known.askAgainAt = clock.now() + PROTOCOL_KEPT_MS
      return known.last
    } finally {
      known.asking = undefined
    }
  }

  /** What a service said last, while it is asked again. @param isPatient whether to wait for one that is slow and has said nothing yet */
  async function description(
    service: Appservice,
    protocol: string,
    isPatient: boolean,
  ): Promise<JsonObject | undefined> {
    const key = `${service.id} ${protocol}`
    const known = described.get(key) ?? { last: undefined, asking: undefined, askAgainAt: 0 }
    described.set(key, known)
    if (known.asking === undefined && known.askAgainAt <= clock.now()) known.asking = askAgain(known, service, protocol)
    const { asking, last } = known
    if (asking !== undefined && last === undefined) return isPatient ? asking : withinTime(asking, waitMs)
    // Who asks next hears of it.
    asking?.catch(() => {})
    return last
  }

  const providers = (protocol: string) =>
    registry.all().filter(({ registration }) => registration.protocols.includes(protocol))

  /** The first service's metadata, with the instances of all services. */
  async function merged(protocol: string, isPatient: boolean): Promise<JsonObject | undefined> {
    const found = await Promise.all(providers(protocol).map((service) => description(service, protocol, isPatient)))
    const [first, ...others] = found.filter((one) => one !== undefined)
    if (first === undefined) return undefined
    return { ...first, instances: [first, ...others].flatMap(({ instances }) => instances as JsonValue[]) }
  }

  async function gather(
    services: readonly Appservice[],
    kind: ThirdPartyKind,
    query: { readonly operation: AppserviceRequest['operation']; readonly path: string },
  ): Promise<JsonObject[]> {
    const answers = await Promise.all(services.map((service) => ask(service, query.operation, query.path)))
    const found = answers.flatMap(({ body }) => (Array.isArray(body) ? body : [])).filter(isResult(kind))
    if (found.length > 0) return found.slice(0, MAX_THIRD_PARTY_RESULTS)
    throw new ProtocolError('M_NOT_FOUND', `No application service knows such a ${kind}.`)
  }

  return {
    async protocols() {
      const names = [...new Set(registry.all().flatMap(({ registration }) => registration.protocols))]
      const all = await Promise.all(names.map(async (name) => [name, await merged(name, false)] as const))
      return Object.fromEntries(all.flatMap(([name, found]) => (found === undefined ? [] : [[name, found] as const])))
    },
    async protocol(name) {
      const found = await merged(name, true)
      if (found !== undefined) return found
      throw new ProtocolError('M_NOT_FOUND', `No application service provides the protocol ${name}.`)
    },
    async search(kind, protocol, fields) {
      const query = fields.size === 0 ? '' : `?${fields}`
      const path = `/thirdparty/${kind}/${encodeURIComponent(protocol)}${query}`
      return gather(providers(protocol), kind, { operation: `GET A/thirdparty/${kind}/{protocol}`, path })
    },
    async lookUp(kind, id) {
      const name = kind === 'user' ? 'userid' : 'alias'
      const services = registry.all().filter(({ registration }) => registration.protocols.length > 0)
      const path = `/thirdparty/${kind}?${name}=${encodeURIComponent(id)}`
      return gather(services, kind, { operation: `GET A/thirdparty/${kind}`, path })
    },
  }
}

async function withinTime<T>(asking: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController()
  try {
    return await Promise.race([asking, pause(ms, undefined, { signal: over.signal, ref: false })])
  } finally {
    over.abort()
  }
}

/** The table "Third-party protocol" of the specification. */
function isProtocol(value: JsonValue | undefined): value is JsonObject {
  return (
    isObject(value) &&
    Array.isArray(value.user_fields) &&
    Array.isArray(value.location_fields) &&
    typeof value.icon === 'string' &&
    isObject(value.field_types) &&
    Array.isArray(value.instances)
  )
}

/** Clients name a network by its instance id, so the ids of different services' networks must differ. */
function namedInstances({ id }: Appservice, protocol: JsonObject): JsonObject {
  const instances = (protocol.instances as JsonValue[]).filter(
    (instance): instance is JsonObject =>
      isObject(instance) &&
      typeof instance.network_id === 'string' &&
      typeof instance.desc === 'string' &&
      isObject(instance.fields),
  )
  return {
    ...protocol,
    instances: instances.map((instance) => ({ ...instance, instance_id: `${id}|${instance.network_id}` })),
  }
}

/** The tables "Third-party user" and "location". Incomplete results are dropped. */
function isResult(kind: ThirdPartyKind): (value: JsonValue) => value is JsonObject {
  const named = kind === 'user' ? isUserId : isRoomAlias
  const name = kind === 'user' ? 'userid' : 'alias'
  return (value): value is JsonObject =>
    isObject(value) && named(value[name]) && typeof value.protocol === 'string' && isObject(value.fields)
}
