import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import { type RoomAlias, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { AppserviceAnswer, AppserviceClient, AppserviceRequest } from '../../outbound/appservice.ts'
import type { Appservice } from './appservice.ts'
import { targetOf, whyNot } from './delivery.ts'
import type { AppserviceRegistry } from './registry.ts'
import type { HostedAppservices } from './running-appservices.ts'

/** Asks services for users and aliases that they make on request (application service API, "Querying"). */
export interface AppserviceQueries {
  /** Whether a service has just made this user of its namespace. */
  findUser(userId: UserId): Promise<boolean>
  /**
   * The same for an alias.
   * @throws ProtocolError 408 `M_CONNECTION_TIMEOUT` if a service whose namespace contains it does not answer
   */
  findAlias(alias: RoomAlias): Promise<boolean>
}

type Operation = AppserviceRequest['operation']

/** This is short, because a user waits for the answer. */
const TRY_MS = 6_000
const PAUSES_MS = [100, 400]
const ALL_TRIES_MS = 12_000

export function createAppserviceQueries(deps: {
  readonly serverName: ServerName
  readonly registry: AppserviceRegistry
  readonly hosted: HostedAppservices
  readonly client: AppserviceClient
  readonly log: Logger
}): AppserviceQueries {
  const { serverName, registry, hosted, client, log } = deps
  /** Queries in flight. A second caller shares the first one's answer. */
  const asking = new Map<string, Promise<boolean>>()

  function once(service: Appservice, request: AppserviceRequest): Promise<AppserviceAnswer> | undefined {
    const target = targetOf(service)
    return hosted.ask(service.id, request) ?? (target && client.ask(target, request))
  }

  /** Retries until there is an answer of any kind. */
  async function insist(
    service: Appservice,
    path: string,
    operation: Operation,
  ): Promise<AppserviceAnswer | undefined> {
    const until = performance.now() + ALL_TRIES_MS
    for (const wait of [...PAUSES_MS, undefined]) {
      const answer = await once(service, { operation, path, legacyPath: path, timeoutMs: TRY_MS })
      if (answer === undefined) return undefined
      const isAnswer = answer.kind === 'answered' && answer.status < 500
      if (isAnswer || wait === undefined || performance.now() + TRY_MS > until) return answer
      await pause(wait)
    }
    return undefined
  }

  async function ask(service: Appservice, path: string, operation: Operation): Promise<boolean> {
    const answer = await insist(service, path, operation)
    if (answer === undefined) return false
    if (answer.kind === 'answered' && answer.status === 200) return true
    if (answer.kind === 'answered' && answer.status < 500) return false
    log.info({ appservice: service.id, reason: whyNot(answer) }, 'an application service did not answer a query')
    const error = `The application service ${service.id} does not answer. Try again later.`
    throw new ProtocolError('M_CONNECTION_TIMEOUT', error, { status: 408 })
  }

  /** Asks the services one after another. One that confirms has made the user or room. */
  async function askAll(services: readonly Appservice[], path: string, operation: Operation): Promise<boolean> {
    let failure: unknown
    for (const service of services) {
      try {
        if (await ask(service, path, operation)) return true
      } catch (error) {
        failure = error
      }
    }
    if (failure !== undefined) throw failure
    return false
  }

  function find(kind: 'users' | 'aliases', id: string): Promise<boolean> {
    const services = serverOf(id) === serverName ? registry.claimsOn(kind, id).map(({ service }) => service) : []
    const asked = services.filter((service) => id !== service.sender)
    if (asked.length === 0) return Promise.resolve(false)
    const path = `/${kind === 'users' ? 'users' : 'rooms'}/${encodeURIComponent(id)}`
    const operation = kind === 'users' ? 'GET A/users/{userId}' : 'GET A/rooms/{roomAlias}'
    const under = asking.get(path)
    if (under !== undefined) return under
    const answer = askAll(asked, path, operation).finally(() => asking.delete(path))
    asking.set(path, answer)
    return answer
  }

  return {
    // If no service confirms a user, the user does not exist.
    findUser: (userId) => find('users', userId).catch(() => false),
    findAlias: (alias) => find('aliases', alias),
  }
}
