import type { Logger } from 'pino'
import { indexNamespaces, type NamespaceIndex } from '../../core/appservice/namespace-index.ts'
import { NAMESPACE_KINDS, type NamespaceKind, type Registration } from '../../core/appservice/registration.ts'
import { createCache } from '../../core/cache.ts'
import type { ServerName } from '../../core/ids.ts'
import { MAX_REMEMBERED_NAMESPACES } from '../limits.ts'
import { type Appservice, appserviceOf, findByToken } from './appservice.ts'

/** A service whose namespace contains an id. */
export interface Claim {
  readonly service: Appservice
  readonly exclusive: boolean
}

/** The application services of this server and their namespaces. */
export interface AppserviceRegistry {
  /** In the order of their registrations. */
  all(): readonly Appservice[]
  byId(id: string): Appservice | undefined
  /** The service with this `as_token`. */
  byToken(token: string): Appservice | undefined
  /** The services whose namespaces contain an id of this kind, each once. A service's own user counts as exclusive. */
  claimsOn(kind: NamespaceKind, id: string): readonly Claim[]
  /** Whether these registrations are the current ones. */
  isAsNow(registrations: readonly Registration[]): boolean
  /** Replaces all registrations, and calls the listeners. */
  replace(registrations: readonly Registration[]): void
  /** Calls the listener after every change. */
  onChange(listener: () => void): void
}

type Index = NamespaceIndex<Claim>
const NOBODY: readonly Claim[] = []

export function createAppserviceRegistry(deps: {
  readonly serverName: ServerName
  readonly log: Logger
  /** Services that are part of this process and always registered. */
  readonly builtIn?: readonly Registration[]
}): AppserviceRegistry {
  const { serverName, log, builtIn = [] } = deps
  const listeners: (() => void)[] = []
  let services: readonly Appservice[] = []
  let indexes: Readonly<Record<NamespaceKind, Index>> | undefined
  let remembered: Readonly<Record<NamespaceKind, ReturnType<typeof createCache<string, readonly Claim[]>>>> | undefined

  function indexOf(kind: NamespaceKind): Index {
    const entries = services.flatMap((service) =>
      service.registration.namespaces[kind].map(({ expression, exclusive }) => ({
        expression,
        value: { service, exclusive },
      })),
    )
    if (kind !== 'users') return indexNamespaces(entries)
    const senders = services.map((service) => ({
      expression: { prefix: service.sender, matches: (id: string) => id === service.sender },
      value: { service, exclusive: true },
    }))
    return indexNamespaces([...senders, ...entries])
  }

  const forKinds = <T>(make: (kind: NamespaceKind) => T): Record<NamespaceKind, T> =>
    Object.fromEntries(NAMESPACE_KINDS.map((kind) => [kind, make(kind)])) as Record<NamespaceKind, T>

  return {
    all: () => services,
    byId: (id) => services.find((service) => service.id === id),
    byToken: (token) => findByToken(services, token),
    claimsOn(kind, id) {
      if (indexes === undefined || remembered === undefined) return NOBODY
      const known = remembered[kind].get(id)
      if (known !== undefined) return known
      const claims = oncePerService(indexes[kind].find(id))
      remembered[kind].set(id, claims)
      return claims
    },
    isAsNow: (registrations) =>
      textOf([...builtIn, ...registrations]) === textOf(services.map(({ registration }) => registration)),
    replace(registrations) {
      services = [...builtIn, ...registrations].map((registration) => appserviceOf(registration, serverName))
      const isAny = services.length > 0
      indexes = isAny ? forKinds(indexOf) : undefined
      remembered = isAny ? forKinds(() => createCache<string, readonly Claim[]>(MAX_REMEMBERED_NAMESPACES)) : undefined
      if (isAny) log.info({ services: services.map(({ id }) => id) }, 'application services are registered')
      for (const listener of listeners) listener()
    },
    onChange: (listener) => void listeners.push(listener),
  }
}

/** The registrations as text. The compiled expressions are left out, since they follow from it. */
function textOf(registrations: readonly Registration[]): string {
  return JSON.stringify(registrations, (key, value: unknown) => (key === 'expression' ? undefined : value))
}

/** A claim is exclusive if one of the service's namespaces is. */
function oncePerService(claims: readonly Claim[]): readonly Claim[] {
  if (claims.length === 0) return NOBODY
  const byService = new Map<Appservice, Claim>()
  for (const claim of claims) {
    const before = byService.get(claim.service)
    if (before === undefined || (claim.exclusive && !before.exclusive)) byService.set(claim.service, claim)
  }
  return [...byService.values()]
}
