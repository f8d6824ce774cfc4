import published from './published.json' with { type: 'json' }

/**
 * The 258 operations of the published interface: those of all releases since r0, each once, at its first path. The newer name of a path is
 * another operation only where it is spelled otherwise.
 */
export const PUBLISHED: readonly string[] = published

/** Operations without an answer of success, because this server lacks the feature; the specification says how it answers them then. */
export const WITHOUT_FEATURE: Readonly<Record<string, string>> = {
  'GET /_matrix/federation/v1/query/{queryType}': '404 `M_NOT_FOUND`: there are queries of directory and profile only',
}

interface Operation {
  readonly line: string
  readonly method: string
  readonly segments: readonly string[]
  readonly literals: number
}

const segmentsOf = (path: string): string[] => path.replace(/^\/+|\/+$/g, '').split('/')
const isParam = (segment: string): boolean => segment.startsWith('{')

const OPERATIONS: readonly Operation[] = PUBLISHED.map((line) => {
  const [method = '', path = ''] = line.split(' ')
  const segments = segmentsOf(path)
  return { line, method, segments, literals: segments.filter((segment) => !isParam(segment)).length }
}).sort((one, other) => other.literals - one.literals)

/** The published spelling of a path of either dialect and of any release. */
const publishedPath = (path: string): string =>
  path
    .replace(/^\/(?:_proto|\.well-known\/proto)(?=\/)/, (root) => root.replace('proto', 'matrix'))
    .replace(/^(\/_matrix\/client)\/r0\//, '$1/v3/')
    .replace(/^(\/_matrix\/media)\/(?:r0|v1)\/(?!create)/, '$1/v3/')

/** The published operation that a request asks for; undefined for others. @param path without query */
export function operationOf(method: string, path: string): string | undefined {
  const segments = segmentsOf(publishedPath(path))
  return OPERATIONS.find(
    (operation) =>
      operation.method === method &&
      operation.segments.length === segments.length &&
      operation.segments.every((segment, index) => isParam(segment) || segment === segments[index]),
  )?.line
}
