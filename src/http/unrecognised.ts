import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ProtocolError } from '../core/errors.ts'
import { groupBy } from '../core/group-by.ts'
import { pathsOf } from '../core/paths.ts'

interface KnownPath {
  readonly segments: readonly string[]
  readonly methods: readonly string[]
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

/** The known paths. They tell a wrong method (405) from an unknown path (404), and are taken apart when somebody asks that first. */
class KnownPaths {
  readonly #methods = new Map<string, readonly string[]>()
  #byLength: Map<number, KnownPath[]> | undefined

  add(path: string, methods: readonly string[]): void {
    this.#methods.set(path, [...(this.#methods.get(path) ?? []), ...methods])
  }

  methodsFor(path: string): string[] {
    const actual = segmentsOf(path)
    this.#byLength ??= this.#takeApart()
    const matches = (this.#byLength.get(actual.length) ?? []).filter(({ segments }) =>
      segments.every((segment, index) => segment.startsWith(':') || segment === actual[index]),
    )
    return [...new Set(matches.flatMap(({ methods }) => methods))].sort()
  }

  /** By the number of segments. */
  #takeApart(): Map<number, KnownPath[]> {
    const known = [...this.#methods].flatMap(([route, methods]) =>
      pathsOf(route).map((path) => ({ segments: segmentsOf(path), methods })),
    )
    return groupBy(known, ({ segments }) => segments.length)
  }
}

/** Answers 404 and 405 with `M_UNRECOGNIZED`. Register it before the routes, because it collects their paths. */
export function answerUnrecognised(app: FastifyInstance): void {
  const known = new KnownPaths()
  app.addHook('onRoute', ({ url, method }) => {
    if (!url.includes('*')) known.add(url, [method].flat())
  })
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const [path = ''] = request.url.split('?')
    const methods = known.methodsFor(path)
    // A path with a doubled slash is not a known path, though it may look like one.
    if (methods.length === 0 || methods.includes(request.method))
      throw new ProtocolError('M_UNRECOGNIZED', 'This server knows no such path.')
    reply.header('allow', [...methods, 'OPTIONS'].join(', '))
    throw new ProtocolError('M_UNRECOGNIZED', `This path does not know the method ${request.method}.`, { status: 405 })
  })
}
