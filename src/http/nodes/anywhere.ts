import type { IncomingMessage } from 'node:http'
import { groupBy } from '../../core/group-by.ts'
import { routesOf } from '../../core/paths.ts'
import { MAX_KEPT_BODY_BYTES } from '../../domain/limits/cluster.ts'
import type { Endpoint } from '../endpoint.ts'

/** Whether a node that stands by may try to answer a request itself. */
export type IsAnywhere = (request: IncomingMessage) => boolean

/** @param endpoints those that may be answered anywhere */
export function tableOf(endpoints: readonly Endpoint[]): IsAnywhere {
  const known = patternsOf(endpoints, '/?(?:\\?|$)')
  return ({ method = '', url = '', headers }) =>
    (method === 'GET' ? !hasBody(headers) : isShort(headers)) && known.get(method)?.test(url) === true
}

/** For each method, a pattern of the targets of all requests to these endpoints. @param end what may come after the path */
export function patternsOf(endpoints: readonly Endpoint[], end: string): ReadonlyMap<string, RegExp> {
  const known = new Map<string, RegExp>()
  for (const [method, some] of groupBy(endpoints, (one) => one.method)) {
    const routes = some.flatMap(({ path, options }) => [path, ...(options.also ?? [])].flatMap(routesOf))
    known.set(method, new RegExp(`^(?:${routes.map(({ path }) => patternOf(path)).join('|')})${end}`))
  }
  return known
}

type Headers = IncomingMessage['headers']

/** A request that is passed on must not have lost anything to a node that only tried to answer it. */
export function hasBody(headers: Headers): boolean {
  const length = headers['content-length'] ?? '0'
  return headers['transfer-encoding'] !== undefined || headers.expect !== undefined || length !== '0'
}

/** Whether the body can be kept until the answer. */
export function isShort(headers: Headers): boolean {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false
  return Number(headers['content-length'] ?? Number.NaN) <= MAX_KEPT_BODY_BYTES
}

/**
 * A pattern of the paths of a route in the router's notation: `/:root(_matrix|_proto)/client/v1/rooms/:roomId`.
 *
 * @param value a pattern of a value that is not one of some
 */
export function patternOf(route: string, value = '[^/?#]+'): string {
  return route
    .split('/')
    .map((segment) => {
      if (!segment.startsWith(':')) return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      const [, values] = /\(([^)]+)\)$/.exec(segment) ?? []
      return values === undefined ? value : `(?:${values})`
    })
    .join('/')
}
