import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, createRoom, join, register } from '../../../support/api.ts'
import { isAlive } from '../../../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { familyLog } from '../../../support/family.ts'
import { messagesOf, startInsistentSenders } from '../../../support/insistent.ts'
import { type Nodes, startNodes } from '../../../support/nodes.ts'
import { waitUntil } from '../../../support/wait.ts'

/** Two machines, each with several nodes, over one database. */
const MACHINES = 2
const NODES = 2
const SENDERS = 3

let database: TestDatabase
let cluster: Nodes
let people: Account[]
let room: string

beforeAll(async () => {
  database = await createTestDatabase()
  cluster = await startNodes({
    count: MACHINES,
    url: () => database.url,
    env: () => ({ HEARTH__CLUSTER__NODES: `${NODES}`, HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4' }),
  })
  const [api] = cluster.apis
  people = []
  for (let n = 0; n < SENDERS; n++) people.push(await register(api!, `sender${n}`))
  room = await createRoom(api!, people[0]!.token, { preset: 'public_chat' })
  for (const { token } of people.slice(1)) await join(api!, token, room)
})
afterAll(async () => {
  await cluster?.close()
  await database?.drop()
})

const holder = async (): Promise<string> =>
  (await database.db.query<{ holder: string }>('SELECT holder FROM node'))[0]!.holder

test('nodes of two machines are one cluster: any of them takes over, and a whole machine can go', {
  timeout: 180_000,
}, async () => {
  const { apis, nodes } = cluster
  const senders = startInsistentSenders({ apis, people, rooms: [room], listener: people[0]!, pauseMs: 10 })
  const more = async (count: number) => {
    const before = senders.acknowledged.size
    await waitUntil('more messages', () => senders.acknowledged.size > before + count)
  }
  const [first, second] = nodes.map(familyLog)
  await waitUntil('all nodes', () => first!.pids().size === NODES && second!.pids().size === NODES)
  await more(50)

  // The machine of whoever serves knows that it is dead; whoever is quickest has the place.
  const before = await holder()
  const killed = performance.now()
  process.kill(first!.pids().get(first!.serving()!)!, 'SIGKILL')
  await waitUntil('the next one', async () => (await holder()) !== before)
  expect(performance.now() - killed).toBeLessThan(7_000)
  await more(50)

  // A whole machine stops: it gives the place back, if it has it, and says to balancers that it goes.
  const children = [...first!.pids().values()]
  const stopping = nodes[0]!.kill('SIGTERM')
  await waitUntil('what a balancer hears', () =>
    fetch(`${nodes[0]!.baseUrl}/health/ready`).then(
      ({ status }) => status === 503,
      () => false,
    ),
  )
  await stopping
  expect(children.filter(isAlive)).toEqual([])
  await more(50)
  await senders.stop()
  const stored = await messagesOf(apis[1]!, people[0]!, room)
  expect(new Map(stored.map(({ id, text }) => [text, id]))).toEqual(senders.acknowledged)
  expect(stored).toHaveLength(senders.acknowledged.size)
})
