import type { FastifyInstance } from 'fastify'

const METHODS = 'GET, POST, PUT, DELETE, OPTIONS'
const REQUEST_HEADERS = 'Origin, X-Requested-With, Content-Type, Accept, Authorization'
const MAX_AGE_SECONDS = 86_400

/** The only paths that know `PATCH`. */
const PROFILES = ['v3', 'r0', 'unstable/uk.tcpip.msc4133'].map((release) => `/_matrix/client/${release}/profile/`)
const METHODS_OF_PROFILES = `${METHODS}, PATCH`

const isProfile = (url: string): boolean => PROFILES.some((path) => url.startsWith(path))

/** The specification requires them on every answer, not on preflights only ("Web browser clients"). */
export const CORS_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': METHODS,
  'access-control-allow-headers': REQUEST_HEADERS,
}

/** Some browsers wait for a body unless the length says that there is none. */
const OF_PREFLIGHTS = { 'access-control-max-age': String(MAX_AGE_SECONDS), 'content-length': '0' }

/** Browser clients come from anywhere. `OPTIONS` is answered on any path, without looking at the path. */
export function answerCors(app: FastifyInstance): void {
  app.addHook('onRequest', ({ url, method }, reply, done) => {
    reply.headers(CORS_HEADERS)
    if (isProfile(url)) reply.header('access-control-allow-methods', METHODS_OF_PROFILES)
    if (method === 'OPTIONS') void reply.code(204).headers(OF_PREFLIGHTS).send()
    else done()
  })
}
