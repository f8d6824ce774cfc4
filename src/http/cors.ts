import type { FastifyInstance } from 'fastify'

/** Browser clients come from anywhere: every answer carries these, errors included (client-server API, "Web browser clients"). */
export const CORS_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
  'access-control-allow-headers': 'Origin, X-Requested-With, Content-Type, Accept, Authorization',
}

/** `OPTIONS` on any path, answered without looking at the path. */
export function answerPreflights(app: FastifyInstance): void {
  app.options('*', (_request, reply) => reply.code(204).header('access-control-max-age', '86400').send())
}
