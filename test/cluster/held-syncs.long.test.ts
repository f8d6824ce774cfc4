import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Account, createRoom, type Json, openApi, register, sendText, syncPath } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { waitUntil } from '../support/wait.ts'

/** Syncs that a node holds, when the node that it follows stops, fails or hangs: they go on, and their clients notice nothing. */

let database: TestDatabase
let cluster: Nodes
let alice: Account
let room: string
/** Where each node has its metrics. */
let ports: number[]

beforeEach(async () => {
  database = await createTestDatabase()
  ports = [await freePort(), await freePort()]
  cluster = await startNodes({
    count: 2,
    url: () => database.url,
    env: (n) => ({ HEARTH__METRICS__PORT: `${ports[n]}` }),
  })
  alice = await register(cluster.apis[0]!, 'alice')
  room = await createRoom(cluster.apis[0]!, alice.token)
})
afterEach(async () => {
  // A process that is stopped does not end by itself.
  for (const node of cluster.nodes) if (node.isRunning()) process.kill(node.pid(), 'SIGCONT')
  await cluster.close()
  await database.drop()
})

const bodiesIn = (answer: Json): string[] =>
  (answer.rooms?.join?.[room]?.timeline.events ?? []).map(({ content }: Json) => content.body)

it.each([
  ['is asked to stop', 'SIGTERM'],
  ['is killed', 'SIGKILL'],
  ['hangs', 'SIGSTOP'],
] as const)('a held sync goes on when the node that serves %s', { timeout: 120_000 }, async (_, signal) => {
  const [first] = cluster.nodes
  const { token } = alice
  const second = cluster.nodes[1]!.baseUrl
  const api = cluster.apis[1]!
  const { next_batch } = await api.call('GET', syncPath({}), { token })
  // Its own presence may be news once.
  const { next_batch: since } = await api.call('GET', syncPath({ since: next_batch }), { token })
  const poll = openApi(second, { connections: 1 })
  try {
    const from = (position: string) => poll.request('GET', syncPath({ since: position, timeout: 60_000 }), { token })
    const held = from(since)
    await waitUntil('a sync that is held', async () => (await heldThere()) > 0)
    process.kill(first!.pid(), signal)
    // It waits for a node that serves.
    await sendText(api, token, room, 'one', 'after it')
    let { status, body } = await held
    // At the other node, presence is news.
    while (status === 200 && bodiesIn(body).length === 0) ({ status, body } = await from(body.next_batch))
    expect([status, bodiesIn(body)]).toEqual([200, ['after it']])
  } finally {
    await poll.close()
  }
})

/** How many syncs the second node holds, as its metrics say. */
async function heldThere(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${ports[1]}/metrics`)).text()
  return Number(/^hearth_waiting_syncs (\d+)$/m.exec(text)?.[1] ?? 0)
}
