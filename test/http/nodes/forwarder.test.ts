import { once } from 'node:events'
import { createServer, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createForwarder, type Forwarder } from '../../../src/http/nodes/forwarder.ts'

const opened: Server[] = []
afterEach(() => {
  for (const server of opened.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

const forwarderWith = (secondMs: number): Forwarder =>
  createForwarder({ secret: 'of the nodes', now: Date.now, target: () => undefined, secondMs })

/** Passes one request on after `before`, which it waits for here. Resolves when that is over. */
async function passed(
  forwarder: Forwarder,
  before: (...exchange: Parameters<Forwarder['keep']>) => Promise<unknown>,
): Promise<{ readonly ended: Promise<ServerResponse>; readonly url: string }> {
  const server = createServer()
  opened.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const ended = once(server, 'request').then(async ([asked, response]) => {
    await before(asked, response)
    await forwarder.pass(asked, response)
    return response
  })
  return { ended, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('a request that waited for something else here', () => {
  it('is over if its body came too slowly', async () => {
    const forwarder = forwarderWith(5)
    const { ended, url } = await passed(forwarder, forwarder.keep)
    const asked = request(url, { method: 'POST', headers: { 'content-length': 50_000 } })
    const refused = once(asked, 'response')
    asked.on('error', () => {})
    asked.write(' ')
    expect((await refused)[0].statusCode).toBe(408)
    expect((await ended).statusCode).toBe(408)
    asked.destroy()
  })

  it('is over if its client left', async () => {
    let leave = (): void => {}
    const { ended, url } = await passed(forwarderWith(600_000), (_asked, response) => {
      leave()
      return once(response, 'close')
    })
    const leaving = request(url, { method: 'POST', headers: { 'content-length': 50_000 } })
    leaving.on('error', () => {})
    leave = () => void leaving.destroy()
    leaving.write(' ')
    expect((await ended).headersSent).toBe(false)
  })
})
