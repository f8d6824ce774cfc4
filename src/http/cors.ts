import cors from '@fastify/cors'
import type { FastifyInstance, FastifyPluginCallback } from 'fastify'

const METHODS = 'GET, POST, PUT, DELETE, OPTIONS'
const REQUEST_HEADERS = 'Origin, X-Requested-With, Content-Type, Accept, Authorization'
const MAX_AGE_SECONDS = 86_400

/** The only paths that know `PATCH`. */
const PROFILES = ['v3', 'r0', 'unstable/uk.tcpip.msc4133'].map((release) => `/_matrix/client/${release}/profile/`)
const METHODS_OF_PROFILES = `${METHODS}, PATCH`

/** Rendezvous sessions have revisions. */
const RENDEZVOUS = '/_matrix/client/unstable/org.matrix.msc4108/rendezvous'
const HEADERS_OF_RENDEZVOUS = `${REQUEST_HEADERS}, If-Match, If-None-Match`

const isProfile = (url: string): boolean => PROFILES.some((path) => url.startsWith(path))

/** Those of every answer (client-server API, "Web browser clients"). */
export const CORS_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': REQUEST_HEADERS,
}

/** Browser clients come from anywhere. */
export function answerCors(app: FastifyInstance): void {
  app.addHook('onRequest', ({ url }, reply, done) => {
    reply.headers(CORS_HEADERS)
    if (url.startsWith(RENDEZVOUS)) reply.header('access-control-allow-headers', HEADERS_OF_RENDEZVOUS)
    if (isProfile(url)) reply.header('access-control-allow-methods', METHODS_OF_PROFILES)
    done()
  })
  void app.register(answerPreflights)
}

/**
 * `OPTIONS` is answered on any path, without looking at the path. `@fastify/cors` does it: CORS is not what this server exists for. It is
 * registered for these routes alone, because what it does before each request costs as much as finding the route.
 */
const answerPreflights: FastifyPluginCallback = (app, _options, done) => {
  void app.register(cors, {
    origin: '*',
    methods: METHODS,
    allowedHeaders: REQUEST_HEADERS,
    maxAge: MAX_AGE_SECONDS,
    strictPreflight: false,
  })
  const config = { cors: { methods: METHODS_OF_PROFILES } }
  for (const path of PROFILES) app.options(`${path}*`, { config }, (_request, reply) => reply.send())
  const withRevisions = { cors: { allowedHeaders: HEADERS_OF_RENDEZVOUS } }
  for (const path of [RENDEZVOUS, `${RENDEZVOUS}/*`]) {
    app.options(path, { config: withRevisions }, (_request, reply) => reply.send())
  }
  done()
}
