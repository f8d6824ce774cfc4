import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createMetrics } from '../../src/domain/metrics.ts'
import { type Connections, createConnections } from '../../src/http/connections.ts'
import { type Front, openFront } from '../../src/http/nodes/front.ts'
import { stopStandingBy } from '../../src/stopping.ts'
import { countSuccessors, leaveNode, takeNode } from '../../src/store/cluster/nodes.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'
import { openProcesses, type Processes } from './processes.ts'

let database: TestDatabase
let processes: Processes
const opened: { close(): void }[] = []

beforeEach(async () => {
  database = await createTestDatabase()
  processes = openProcesses(database)
})
afterEach(async () => {
  for (const one of opened.splice(0)) one.close()
  await processes.endAll()
  await database.drop()
})

interface Node {
  readonly front: Front
  readonly connections: Connections
  readonly clients: Server
  readonly url: string
  asked(): number
}

async function openNode(): Promise<Node> {
  let asked = 0
  const log = pino({ level: 'silent' })
  const connections = createConnections(
    { inAll: 1000, perAddress: 1000, trustedProxies: [] },
    { metrics: createMetrics({ version: '0', node: '' }).arrivals, log },
  )
  const front = await openFront({
    secret: 'the secret of the nodes of this test',
    host: '127.0.0.1',
    port: 0,
    connections,
    now: Date.now,
    log,
    answersItself: () => false,
  })
  front.server.on('request', () => asked++)
  const clients = createServer(front.routing)
  await new Promise<void>((resolve) => clients.listen(0, '127.0.0.1', resolve))
  for (const server of [clients, front.server])
    opened.push({
      close() {
        server.close()
        server.closeAllConnections()
      },
    })
  opened.push(front)
  const url = `http://127.0.0.1:${(clients.address() as AddressInfo).port}`
  return { front, connections, clients, url, asked: () => asked }
}

it('a node that stops does not end while a request waits for one that has the place and is about to serve', async () => {
  const [first, second] = [await openNode(), await openNode()]
  const facts = processes.node({ address: first.front.address }).own
  const fence = await takeNode(database.db, WRITER, facts, 60_000)
  second.front.passTo(first.front.address)
  const waiting = fetch(`${second.url}/one`, { method: 'POST', body: 'x' })
  await waitUntil('a first try', () => first.asked() > 0)
  let isOver = false
  const over = stopStandingBy({
    front: second.front,
    servers: [second.clients],
    connections: second.connections,
    connection: database.connection,
    farewellMs: 0,
  }).then(() => {
    isOver = true
  })
  const before = first.asked()
  await waitUntil('later tries', () => first.asked() > before + 3)
  expect(isOver).toBe(false)
  first.front.serve(
    (_request, response) => response.end('served'),
    () => true,
  )
  const answer = await waiting
  expect([answer.status, await answer.text()]).toEqual([200, 'served'])
  await over
  await leaveNode(database.db, { writer: WRITER, fence: fence! })
})

it('a node that stops knows whether another one is there', async () => {
  const first = processes.node()
  await takeNode(first.db, WRITER, first.own, 60_000)
  expect(await countSuccessors(database.db, WRITER)).toBe(0)
  await processes.node().db.query('SELECT 1 AS one')
  expect(await countSuccessors(database.db, WRITER)).toBe(1)
})
