import findMyWay, { type Instance } from 'find-my-way'
import { ProtocolError } from '../../core/errors.ts'
import { type Dialect, routesOf, usualPathOf } from '../../core/paths.ts'
import type { Endpoint } from '../endpoint.ts'
import type { PathParams } from '../request.ts'
import { KnownPaths } from './known-paths.ts'

/** Which endpoint is served at a path. */
export interface Place {
  /** Of the endpoint, among all of the table. */
  readonly number: number
  readonly endpoint: Endpoint
  /** The list that the endpoint is from, by its number. */
  readonly list: number
  /** Undefined where the parameter `root` says it. */
  readonly dialect: Dialect | undefined
}

export interface FoundPlace {
  readonly place: Place
  readonly params: PathParams
}

/** Finds the endpoints of several lists by method and path. Nothing in it belongs to one server. */
export interface RouteTable {
  readonly endpoints: readonly Pick<Place, 'number' | 'endpoint' | 'list'>[]
  readonly known: KnownPaths
  /** @throws ProtocolError if the path or a parameter is too long */
  find(method: string, url: string): FoundPlace | undefined
}

/** So many look-ups pay for compiling the table, which takes some 80 ms, and saves half of each. Few servers of tests have as many. */
export const LOOKUPS_BEFORE_COMPILING = 20_000

type Lists = readonly (readonly Endpoint[])[]

/** Every identifier fits in 255 bytes; each byte may be percent-encoded. */
const MAX_PARAM_CHARS = 2048
/** More than the longest identifiers make. A longer path is not looked up: to decode 64 KiB of escapes takes milliseconds. */
const MAX_PATH_CHARS = 16_384

const tables: { readonly lists: Lists; readonly table: RouteTable }[] = []

/**
 * The table of these lists. To make it is a good part of a start, and it depends on nothing but code: it is made once, and the next server of
 * this process has it already.
 *
 * @param lists the same arrays each time
 */
export function routeTableOf(lists: Lists): RouteTable {
  const isOfThese = (other: Lists) => other.length === lists.length && other.every((list, at) => list === lists[at])
  const made = tables.find((each) => isOfThese(each.lists))
  if (made !== undefined) return made.table
  const table = makeTable(lists)
  tables.push({ lists, table })
  return table
}

function makeTable(lists: Lists): RouteTable {
  const router = findMyWay({
    ignoreTrailingSlash: true,
    maxParamLength: MAX_PARAM_CHARS,
    onMaxParamLength: () => {},
    // Those of our routes are `(v3|r0)` and the like: to examine each takes as long as to add it.
    allowUnsafeRegex: true,
    // The framework has read it.
    querystringParser: () => undefined,
  })
  const endpoints = lists.flatMap((list, at) => list.map((endpoint) => ({ endpoint, list: at })))
  const numbered = endpoints.map(({ endpoint, list }, number) => ({ number, endpoint, list }))
  const known = new KnownPaths()
  for (const each of numbered) addTo(router, known, each)
  let lookups = 0
  return {
    endpoints: numbered,
    known,
    find(method, url) {
      if (isLong(url)) throw new ProtocolError('M_INVALID_PARAM', 'The path is too long.')
      if (++lookups === LOOKUPS_BEFORE_COMPILING) router.compile()
      const found = router.find(method as 'GET', url)
      if (found === null) return undefined
      if (found.store === null) throw new ProtocolError('M_INVALID_PARAM', 'A part of the path is too long.')
      return { place: found.store, params: found.params as PathParams }
    },
  }
}

function isLong(url: string): boolean {
  if (url.length <= MAX_PATH_CHARS) return false
  const query = url.indexOf('?')
  return query === -1 || query > MAX_PATH_CHARS
}

const UNUSED = (): void => {}

function addTo(
  router: Instance<never>,
  known: KnownPaths,
  { number, endpoint, list }: RouteTable['endpoints'][number],
): void {
  const { method, path, options } = endpoint
  for (const route of [path, ...(options.also ?? [])].flatMap(routesOf)) {
    const place: Place = { number, endpoint, list, dialect: route.dialect }
    router.on(method, route.path, UNUSED, place)
    known.add(route.path, [method])
  }
  if (!options.often) return
  const place: Place = { number, endpoint, list, dialect: 'matrix' }
  router.on(method, usualPathOf(path), UNUSED, place)
}
