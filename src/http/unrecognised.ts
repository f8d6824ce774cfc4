import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ProtocolError } from '../core/errors.ts'

interface KnownPath {
  readonly segments: readonly string[]
  readonly methods: Set<string>
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

/** The known paths, by their number of segments: they tell a wrong method (405) from an unknown path (404). */
class KnownPaths {
  readonly #byLength = new Map<number, KnownPath[]>()

  add(path: string, methods: readonly string[]): void {
    const segments = segmentsOf(path)
    const list = this.#byLength.get(segments.length) ?? []
    list.push({ segments, methods: new Set(methods) })
    this.#byLength.set(segments.length, list)
  }

  methodsFor(path: string): string[] {
    const actual = segmentsOf(path)
    const matches = (this.#byLength.get(actual.length) ?? []).filter(({ segments }) =>
      segments.every((segment, index) => segment.startsWith(':') || segment === actual[index]),
    )
    return [...new Set(matches.flatMap(({ methods }) => [...methods]))].sort()
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
