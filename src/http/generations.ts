import type { Endpoint } from './endpoint.ts'

const isV1 = (path: string): boolean => path === 'P1' || path.startsWith('P1/')

/** The identity service's endpoints without those of its first generation, which then are unknown paths. */
export function withoutV1(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints
    .filter(({ path }) => !isV1(path))
    .map((endpoint) => {
      const { also } = endpoint.options
      return also === undefined
        ? endpoint
        : { ...endpoint, options: { ...endpoint.options, also: also.filter((path) => !isV1(path)) } }
    })
}
