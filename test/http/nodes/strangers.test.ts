import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createStrangers, type Strangers } from '../../../src/http/nodes/strangers.ts'
import { waitUntil } from '../../support/wait.ts'

let server: Server
let strangers: Strangers
let opened: Socket[]

beforeEach(async () => {
  opened = []
  strangers = createStrangers(3)
  server = createServer((incoming, response) => {
    strangers.prove(incoming.socket)
    response.end('welcome')
  })
  server.on('connection', strangers.enter)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  for (const socket of opened) socket.destroy()
  server.close()
})

const portOf = () => (server.address() as AddressInfo).port

/** Connects, says so much, and waits for what comes. */
async function open(text = ''): Promise<Socket> {
  const socket = connect(portOf(), '127.0.0.1')
  opened.push(socket)
  socket.on('error', () => {}).resume()
  await new Promise((resolve) => socket.once('connect', resolve))
  if (text !== '') socket.write(text)
  return socket
}

const connectionsOpen = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))

it('connections that have proved nothing are few, and the oldest of them goes first', async () => {
  const first = await open('GET / HTTP/1.1\r\nx-slow: ')
  await waitUntil('the first one', async () => (await connectionsOpen()) === 1)
  for (let n = 0; n < 20; n++) await open()
  await waitUntil('their end', () => first.destroyed && opened.filter(({ destroyed }) => !destroyed).length === 3)
  expect(await connectionsOpen()).toBe(3)
})

it('one that has proved whose it is stays, however many come after it', async () => {
  const socket = await open('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  for (let n = 0; n < 20; n++) await open()
  await waitUntil('the end of others', () => opened.filter(({ destroyed }) => !destroyed).length === 4)
  expect(socket.destroyed).toBe(false)
  const again = new Promise((resolve) => socket.once('data', (bytes) => resolve(`${bytes}`)))
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  expect(await again).toContain('welcome')
})
