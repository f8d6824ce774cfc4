import { groupBy } from '../../core/group-by.ts'
import { pathsOf } from '../../core/paths.ts'

interface KnownPath {
  readonly segments: readonly string[]
  readonly methods: readonly string[]
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

/** They tell a wrong method (405) from an unknown path (404), and are taken apart when somebody asks that first. */
export class KnownPaths {
  readonly #methods = new Map<string, readonly string[]>()
  #byLength: Map<number, KnownPath[]> | undefined

  /** @param route in the router's notation */
  add(route: string, methods: readonly string[]): void {
    this.#methods.set(route, [...(this.#methods.get(route) ?? []), ...methods])
  }

  methodsFor(path: string): string[] {
    const actual = segmentsOf(path)
    this.#byLength ??= this.#takeApart()
    return (this.#byLength.get(actual.length) ?? [])
      .filter(({ segments }) =>
        segments.every((segment, index) => segment.startsWith(':') || segment === actual[index]),
      )
      .flatMap(({ methods }) => methods)
  }

  /** By the number of segments. */
  #takeApart(): Map<number, KnownPath[]> {
    const known = [...this.#methods].flatMap(([route, methods]) =>
      pathsOf(route).map((path) => ({ segments: segmentsOf(path), methods })),
    )
    return groupBy(known, ({ segments }) => segments.length)
  }
}
