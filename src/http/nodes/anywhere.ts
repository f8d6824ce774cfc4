import type { IncomingMessage } from 'node:http'
import { routesOf } from '../../core/paths.ts'
import type { Endpoint } from '../endpoint.ts'

/** Whether a node that stands by may try to answer a request itself. */
export type IsAnywhere = (request: IncomingMessage) => boolean

/** @param endpoints those that may be answered anywhere */
export function tableOf(endpoints: readonly Endpoint[]): IsAnywhere {
  const routes = endpoints.flatMap(({ path, options }) => [path, ...(options.also ?? [])].flatMap(routesOf))
  const known = new RegExp(`^(?:${routes.map(({ path }) => patternOf(path)).join('|')})/?(?:\\?|$)`)
  return ({ method, url = '', headers }) => method === 'GET' && !hasBody(headers) && known.test(url)
}

/** A request that was passed on must not have lost anything to a node that only tried to answer it. */
function hasBody(headers: IncomingMessage['headers']): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || headers.expect !== undefined || (length ?? '0') !== '0'
}

/** A route in the router's notation: `/:root(_matrix|_proto)/client/v1/rooms/:roomId`. */
function patternOf(route: string): string {
  return route
    .split('/')
    .map((segment) => {
      if (!segment.startsWith(':')) return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      const [, values] = /\(([^)]+)\)$/.exec(segment) ?? []
      return values === undefined ? '[^/?]+' : `(?:${values})`
    })
    .join('/')
}
