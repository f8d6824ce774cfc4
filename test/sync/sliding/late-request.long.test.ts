import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Person, personOf } from '../../rooms/people.ts'
import { type Api, type Json, openApi, register } from '../../support/api.ts'
import { type ChildServer, startChildServer } from '../../support/child-server.ts'
import { type Ask, callOf } from './checker/asking.ts'

let server: ChildServer
let api: Api
let alice: Person

beforeAll(async () => {
  server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' } })
  api = openApi(server.baseUrl)
  alice = personOf(api, await register(api, 'alice'))
})

afterAll(async () => {
  await api.close()
  await server.dispose()
})

/** A request for the newest events of each room, as it goes over the wire. */
function asking(pos: string, limit: number, timeout: number): string {
  const { path, body } = callOf({
    ...{ form: 'merged', connId: 'phone', pos, ask: newest(limit), extensions: {}, timeout, own: alice.userId },
  })
  return written('POST', path, body)
}

const newest = (limit: number): Ask => ({
  lists: { all: { limit, state: [], isLazy: false, range: [0, 9], filter: {} } },
  subscriptions: {},
})

function written(method: string, path: string, body?: object): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = [
    'host: localhost',
    `authorization: Bearer ${alice.token}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
  ]
  return `${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${text}`
}

async function openSocket(): Promise<Socket> {
  const { hostname, port } = new URL(server.baseUrl)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  return socket
}

async function answerOn(socket: Socket): Promise<Json> {
  let text = ''
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    text += chunk.toString()
    const end = text.indexOf('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    const body = text.slice(end + 4)
    if (end >= 0 && Buffer.byteLength(body) >= length) return JSON.parse(body)
  }
}

it('a request that was given up, and is read late, takes nothing from the one after it', async () => {
  const room = await alice.createRoom()
  const { path, body } = callOf({
    ...{ form: 'merged', connId: 'phone', pos: undefined, ask: newest(1), extensions: {}, own: alice.userId },
  })
  const { pos } = await alice.call('POST', path, body)
  for (let n = 0; n < 30; n++) await alice.say(room, `message ${n}`)
  // The server has to read the room, so that it is still at the first request when the late one comes.
  await server.kill('SIGTERM')
  await server.start()
  const kept = await openSocket()
  kept.write(written('GET', '/_matrix/client/v3/account/whoami'))
  await answerOn(kept)

  process.kill(server.pid(), 'SIGSTOP')
  const givenUp = await openSocket()
  givenUp.end(asking(pos, 20, 30_000))
  await once(givenUp, 'finish')
  givenUp.destroy()
  await once(givenUp, 'close')
  const answering = answerOn(kept)
  kept.write(asking(pos, 20, 0))
  // A server reads from the sockets that it knows before it takes new ones.
  process.kill(server.pid(), 'SIGCONT')

  const { rooms } = await answering
  kept.destroy()
  expect(rooms[room].timeline).toHaveLength(20)
})
