/** The path names of a request: `/_proto` or the published network's `/_matrix`. */
export type Dialect = 'proto' | 'matrix'

export const DIALECTS = ['matrix', 'proto'] as const satisfies readonly Dialect[]

/** In the router's notation, as all of `Route`: a parameter that has one of these values. */
const ROOT = `:root(${DIALECTS.map((dialect) => `_${dialect}`).join('|')})`

/**
 * The specification's abbreviations. Each stands for the prefixes of the same operation:
 * `C` was renamed from r0 to v3 in release 1.1 and both stay in use.
 */
const PREFIXES: Readonly<Record<string, string>> = {
  C: 'client/:release(v3|r0)',
  C1: 'client/v1',
  CU: 'client/unstable',
  P1: 'identity/api/v1',
  P2: 'identity/v2',
  F: 'federation',
  K: 'key/v2',
  A: 'app/v1',
  M: 'media/:release(v3|r0|v1)',
}

/** Paths that the router knows as one. To know each by itself would take four times as long at the start. */
export interface Route {
  /** Undefined where the parameter `root` says it, as `_matrix` or `_proto`. */
  readonly dialect: Dialect | undefined
  /** In the router's notation: `/:root(_matrix|_proto)/client/:release(v3|r0)/rooms/:roomId`. */
  readonly path: string
}

/** The routes of an operation written as in the specification. A path that starts with `/` stands for itself. */
export function routesOf(specification: string): Route[] {
  const routed = specification.replace(/\{(?!root\})([^}]+)\}/g, ':$1')
  if (routed.startsWith('/')) {
    if (!routed.includes('{root}')) return [{ dialect: 'matrix', path: routed }]
    return DIALECTS.map((dialect) => ({ dialect, path: routed.replace('{root}', dialect) }))
  }
  const slash = routed.indexOf('/')
  const abbreviation = slash === -1 ? routed : routed.slice(0, slash)
  const rest = slash === -1 ? '' : routed.slice(slash)
  return [{ dialect: undefined, path: `/${ROOT}/${PREFIXES[abbreviation] ?? abbreviation}${rest}` }]
}

/** The path that clients of today use. The router finds it as it is, without trying what its parameters may be. */
export function usualPathOf(specification: string): string {
  return pathsOf(routesOf(specification)[0]!.path)[0]!
}

/** The paths of a route, one by one: `/_matrix/client/v3/rooms/:roomId` and the others. */
export function pathsOf(route: string): string[] {
  const [choice, values] = /:\w+\(([^)]+)\)/.exec(route) ?? []
  if (choice === undefined || values === undefined) return [route]
  return values.split('|').flatMap((value) => pathsOf(route.replace(choice, value)))
}

export interface ExpandedPath {
  readonly dialect: Dialect
  /** In the router's notation: `/_matrix/client/v3/rooms/:roomId`. */
  readonly path: string
}

/**
 * Every URL path that serves an operation written as in the specification.
 *
 * `C/rooms/{roomId}/join` has four (two roots, two releases), `client/versions` two, `/.well-known/{root}/client` two.
 * A path that starts with `/` and has no `{root}` stands for itself, once, in the matrix dialect.
 */
export function expandPath(specification: string): ExpandedPath[] {
  return routesOf(specification).flatMap(({ dialect, path: route }) =>
    pathsOf(route).map((path) => ({ dialect: dialect ?? dialectOf(path), path })),
  )
}

const dialectOf = (path: string): Dialect => (path.startsWith('/_proto') ? 'proto' : 'matrix')
