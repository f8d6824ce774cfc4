import { copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findNode } from '../../src/store/cluster/nodes.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'
import { Dice } from '../federation/dice.ts'
import { type Account, type Api, createRoom, join as joinRoom, openApi, register, syncPath } from '../support/api.ts'
import { type ChildServer, prepareChildServer } from '../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

/** `CLUSTER_KILLS=20 CLUSTER_SEED=7` for more. */
const KILLS = Number(process.env.CLUSTER_KILLS ?? 4)
const SEED = Number(process.env.CLUSTER_SEED ?? 1)
const NODES = 3
const SENDERS = 4
const ROOMS = 2
/** How long a node is frozen that no other one replaces: longer than a lease. */
const STOPPED_MS = 15_000

let database: TestDatabase
const nodes: ChildServer[] = []
const apis: Api[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  for (let n = 0; n < NODES; n++) {
    const node = await prepareChildServer({
      env: {
        HEARTH__DATABASE__URL: database.url,
        HEARTH__CLUSTER__SECRET: 'a secret of the nodes that are killed',
        HEARTH__CLUSTER__PORT: '0',
        HEARTH__REGISTRATION__ENABLED: 'true',
        HEARTH__RATE_LIMITS__ENABLED: 'false',
      },
    })
    const data = join(node.dataDir, 'data')
    if (n > 0) {
      const first = join(nodes[0]!.dataDir, 'data')
      await mkdir(data, { mode: 0o700 })
      for (const name of ['signing.key', 'identity.key']) await copyFile(join(first, name), join(data, name))
      await symlink(join(first, 'media'), join(data, 'media'))
    }
    nodes.push(node)
    await node.start()
    apis.push(openApi(node.baseUrl))
  }
}, 120_000)

afterAll(async () => {
  for (const api of apis) await api.close()
  for (const node of nodes) await node.dispose()
  await database.drop()
})

const isReady = ({ baseUrl }: ChildServer): Promise<boolean> =>
  fetch(`${baseUrl}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  )

const fenceNow = async (): Promise<number> => (await findNode(database.db, WRITER))!.fence

/** Kills, stops or freezes a node, and has it run again. */
async function disturb(node: ChildServer, dice: Dice): Promise<void> {
  const way = dice.pick(['SIGKILL', 'SIGTERM', 'SIGSTOP'] as const)
  if (way === 'SIGSTOP') {
    const before = await fenceNow()
    process.kill(node.pid(), 'SIGSTOP')
    const isReplaced = await waitUntil('another node', async () => (await fenceNow()) > before, {
      timeoutMs: STOPPED_MS,
    }).catch(() => false)
    process.kill(node.pid(), 'SIGCONT')
    // The one that served ends when it learns that another one does; one that stood by goes on.
    await waitUntil('its end, or its readiness', () => (isReplaced ? !node.isRunning() : isReady(node)))
  } else await node.kill(way)
  if (!node.isRunning()) await node.start()
}

it(`nothing acknowledged is lost, doubled or forked while nodes are killed, stopped and frozen (seed ${SEED})`, {
  timeout: 120_000 + KILLS * 60_000,
}, async () => {
  const dice = new Dice(SEED)
  const senders: Account[] = []
  for (let n = 0; n < SENDERS; n++) senders.push(await register(apis[n % NODES]!, `sender${n}`))
  const rooms: string[] = []
  for (let n = 0; n < ROOMS; n++) {
    const room = await createRoom(apis[n]!, senders[0]!.token, { preset: 'public_chat' })
    for (const sender of senders.slice(1)) await joinRoom(apis[n]!, sender.token, room)
    rooms.push(room)
  }
  const start = (await apis[0]!.call('GET', syncPath({}), { token: senders[0]!.token })).next_batch as string

  let isOver = false
  const acknowledged = new Map<string, string>()
  const sending = senders.map(async ({ token }, sender) => {
    for (let n = 0; !isOver; n++) {
      const name = `${sender}-${n}`
      const path = `/rooms/${encodeURIComponent(rooms[n % ROOMS]!)}/send/m.room.message/${name}`
      const body = { msgtype: 'm.text', body: name }
      // Each try goes to another node, with the same transaction id, until one acknowledges it.
      const eventId = await waitUntil(
        `an answer to ${name}`,
        () =>
          apis[Math.floor(Math.random() * NODES)]!.request('PUT', path, { token, body, timeoutMs: 25_000 }).then(
            (answer) => (answer.status === 200 ? (answer.body.event_id as string) : undefined),
            () => undefined,
          ),
        { timeoutMs: 90_000, everyMs: 100 },
      )
      acknowledged.set(name, eventId)
    }
  })

  /** A client that goes from node to node. */
  const seen: string[] = []
  let since = start
  const read = async (timeout: number): Promise<boolean> => {
    const api = apis[Math.floor(Math.random() * NODES)]!
    const filter = { room: { timeline: { limit: 1000 } } }
    const query = syncPath({ since, timeout, filter })
    const { status, body } = await api.request('GET', query, { token: senders[0]!.token, timeoutMs: 25_000 })
    if (status !== 200) return false
    const timelines = Object.values(body.rooms?.join ?? {}) as {
      timeline: { events: { event_id: string; type: string }[] }
    }[]
    for (const { timeline } of timelines)
      for (const { type, event_id } of timeline.events) if (type === 'm.room.message') seen.push(event_id)
    since = body.next_batch
    return timelines.length === 0
  }
  const reading = (async () => {
    while (!isOver) await read(2_000).catch(() => false)
  })()

  for (let n = 0; n < KILLS; n++) {
    const before = acknowledged.size
    await disturb(nodes[dice.below(NODES)]!, dice)
    await waitUntil('sends that go on', () => acknowledged.size > before + SENDERS, { timeoutMs: 60_000 })
  }
  isOver = true
  await Promise.all([...sending, reading])
  await waitUntil('the end of the news', () => read(0).catch(() => false))

  const rows = await database.db.query<{ event_id: string; json: string }>(
    `SELECT event_id, json FROM event WHERE type = 'm.room.message'`,
  )
  const stored = new Map(rows.map(({ event_id, json }) => [JSON.parse(json).content.body as string, event_id]))
  expect(stored.size).toBe(rows.length)
  expect(stored).toEqual(acknowledged)
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.toSorted()).toEqual([...acknowledged.values()].toSorted())
  expect(await database.db.query('SELECT room_nid FROM room WHERE cardinality(extremities) <> 1')).toEqual([])
  const [{ fence } = { fence: 0 }] = await database.db.query<{ fence: number }>('SELECT fence FROM node')
  console.log(`${acknowledged.size} messages, ${fence} places taken`)
})
