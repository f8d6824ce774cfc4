import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, it } from 'vitest'
import { IDLE_CONNECTION_MS } from '../../../src/domain/limits/cluster.ts'
import { createOutgoing } from '../../../src/http/nodes/outgoing.ts'
import { CONNECTIONS } from '../../../src/http/server.ts'

it('a node ends an idle connection to another one before that one does', async () => {
  expect(IDLE_CONNECTION_MS).toBeLessThan(CONNECTIONS.keepAliveTimeout / 2)
  const server = createServer(CONNECTIONS, (request, response) => void response.end(request.url))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // Only the other side can end it so early.
  const ended = once(server, 'connection').then(([socket]: Socket[]) => once(socket!, 'close'))
  const outgoing = createOutgoing(20)
  const { out, heard } = outgoing.send({ port: (server.address() as AddressInfo).port, path: '/one' })
  out.end()
  const [answer] = await once(out, 'response')
  heard()
  answer.resume()
  await ended
  outgoing.giveUp()
  server.close()
  server.closeAllConnections()
})
