/** The path names of a request: `/_proto` or the published network's `/_matrix`. */
export type Dialect = 'proto' | 'matrix'

export const DIALECTS = ['matrix', 'proto'] as const satisfies readonly Dialect[]

/**
 * The specification's abbreviations. Each expands, under every root, to the prefixes of the same operation:
 * `C` was renamed from r0 to v3 in release 1.1 and both stay in use.
 */
const PREFIXES: Readonly<Record<string, readonly string[]>> = {
  C: ['client/v3', 'client/r0'],
  C1: ['client/v1'],
  CU: ['client/unstable'],
  P1: ['identity/api/v1'],
  P2: ['identity/v2'],
  F: ['federation'],
  K: ['key/v2'],
  A: ['app/v1'],
  M: ['media/v3', 'media/r0', 'media/v1'],
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
  const routed = specification.replace(/\{(?!root\})([^}]+)\}/g, ':$1')
  if (routed.startsWith('/')) {
    if (!routed.includes('{root}')) return [{ dialect: 'matrix', path: routed }]
    return DIALECTS.map((dialect) => ({ dialect, path: routed.replace('{root}', dialect) }))
  }
  const slash = routed.indexOf('/')
  const abbreviation = slash === -1 ? routed : routed.slice(0, slash)
  const rest = slash === -1 ? '' : routed.slice(slash)
  const prefixes = PREFIXES[abbreviation] ?? [abbreviation]
  return DIALECTS.flatMap((dialect) => prefixes.map((prefix) => ({ dialect, path: `/_${dialect}/${prefix}${rest}` })))
}
