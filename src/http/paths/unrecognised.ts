import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ProtocolError } from '../../core/errors.ts'
import { KnownPaths } from './known-paths.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Those that a route stands for which takes whatever comes. */
    readonly known?: KnownPaths
  }
}

/** Answers 404 and 405 with `M_UNRECOGNIZED`. Register it before the routes, because it collects their paths. */
export function answerUnrecognised(app: FastifyInstance): void {
  const own = new KnownPaths()
  const all = [own]
  app.addHook('onRoute', ({ url, method, config }) => {
    if (config?.known !== undefined) all.push(config.known)
    else if (!url.includes('*')) own.add(url, [method].flat())
  })
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const [path = ''] = request.url.split('?')
    const methods = [...new Set(all.flatMap((known) => known.methodsFor(path)))].sort()
    // A path with a doubled slash is not a known path, though it may look like one.
    if (methods.length === 0 || methods.includes(request.method))
      throw new ProtocolError('M_UNRECOGNIZED', 'This server knows no such path.')
    reply.header('allow', [...methods, 'OPTIONS'].join(', '))
    throw new ProtocolError('M_UNRECOGNIZED', `This path does not know the method ${request.method}.`, { status: 405 })
  })
}
