import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, createRoom, join, register, syncPath } from '../../test/support/api.ts'
import type { ChildServer } from '../../test/support/child-server.ts'
import { startHaproxy } from '../../test/support/haproxy.ts'
import {
  type InsistentSenders,
  messagesOf,
  startInsistentSenders,
  startWanderer,
  type Wanderer,
} from '../../test/support/insistent.ts'
import { startNodes } from '../../test/support/nodes.ts'
import { waitUntil } from '../../test/support/wait.ts'
import { type PatroniCluster, startPatroniCluster } from './patroni-cluster.ts'
import type { NamedOutcome } from './report.ts'

const SERVERS = 3
const NODES = 2
const SENDERS = 8
const PAUSE_MS = 20
/** Load before the failure, and after it. */
const LOAD_MS = 10_000
/** By the promise, and by the settings of Patroni: its lease of 20 s has to end first. */
const RESUME_MS = 10_000
const FAILOVER_MS = 90_000
/** As a service manager does. */
const RESTART_MS = 2_000

export interface PatroniRun {
  readonly version: string
  readonly outcomes: readonly NamedOutcome[]
}

/**
 * Kills the primary of a Postgres that Patroni runs, while people use two nodes that have it as their database.
 *
 * @param ended rejects when all of this is to end
 */
export async function runPatroni(ended: Promise<never>): Promise<PatroniRun> {
  const postgres = await startPatroniCluster(SERVERS)
  console.log(`Patroni ${postgres.version}: ${SERVERS} servers run`)
  const proxy = await startHaproxy('postgres.cfg', postgres.servers)
  try {
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`
    const cluster = await startNodes({ count: NODES, url: () => url })
    const keeping = keepRunning(cluster.nodes)
    try {
      const outcomes = await Promise.race([failOver(postgres, cluster.apis, keeping), ended])
      return { version: postgres.version, outcomes }
    } finally {
      await keeping.stop()
      await cluster.close()
    }
  } finally {
    await proxy.close()
    await postgres.close()
  }
}

/** What a service manager does: a node that ends is started again. */
function keepRunning(nodes: readonly ChildServer[]) {
  let isOver = false
  let restarts = 0
  const watching = nodes.map(async (node) => {
    while (!isOver) {
      await pause(100)
      if (node.isRunning()) continue
      restarts++
      await pause(RESTART_MS)
      if (!isOver) node.begin()
    }
  })
  return {
    restarts: () => restarts,
    async stop() {
      isOver = true
      await Promise.all(watching)
    },
  }
}

async function failOver(
  postgres: PatroniCluster,
  apis: readonly Api[],
  keeping: { restarts(): number },
): Promise<NamedOutcome[]> {
  const people: Account[] = []
  for (let n = 0; n < SENDERS; n++) people.push(await register(apis[n % NODES]!, `sender${n}`))
  const [first] = people as [Account]
  const room = await createRoom(apis[0]!, first.token, { preset: 'public_chat' })
  for (const { token } of people.slice(1)) await join(apis[0]!, token, room)
  const { next_batch: since } = await apis[0]!.call('GET', syncPath({}), { token: first.token })
  const reader = startWanderer(apis, first, since)
  const senders = startInsistentSenders({ apis, people, rooms: [room], listener: first, pauseMs: PAUSE_MS })
  await pause(LOAD_MS)

  const before = senders.acknowledged.size
  const old = (await postgres.primary())!
  const killedAt = performance.now()
  await postgres.killMachine(old)
  await waitUntil('a new primary', async () => ![undefined, old].includes(await postgres.primary()), {
    timeoutMs: FAILOVER_MS,
    everyMs: 20,
  })
  const promotedAt = performance.now()
  await waitUntil('an acknowledged message', () => senders.times.some((at) => at > promotedAt), {
    timeoutMs: FAILOVER_MS,
  })
  const resumedAt = senders.times.find((at) => at > promotedAt)!
  await pause(LOAD_MS)
  await senders.stop()
  await reader.finish()

  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`
  const after = senders.acknowledged.size - before
  console.log(`${before} messages before the failure, ${after} after it; nodes restarted: ${keeping.restarts()}`)
  return [
    {
      name: `the primary and its Patroni are killed under load: another server is the primary after ${seconds(promotedAt - killedAt)}`,
      problem: undefined,
    },
    {
      name: `messages are acknowledged again ${seconds(resumedAt - promotedAt)} after that, without anybody's help`,
      problem: resumedAt - promotedAt < RESUME_MS ? undefined : `that is longer than ${seconds(RESUME_MS)}`,
    },
    {
      name: `all ${senders.acknowledged.size} acknowledged messages are in the room, once, and no others`,
      problem: await problemOfRoom(apis[0]!, first, room, senders),
    },
    {
      name: 'a client that synced all the while saw the same, in the same order, and every message to its device once',
      problem: await problemOfReader(apis[0]!, first, room, { senders, reader }),
    },
  ]
}

async function problemOfRoom(
  api: Api,
  person: Account,
  room: string,
  { acknowledged }: InsistentSenders,
): Promise<string | undefined> {
  const there = await messagesOf(api, person, room)
  const ids = new Map(there.map(({ text, id }) => [text, id]))
  const lost = [...acknowledged].filter(([text, id]) => ids.get(text) !== id)
  const unknown = there.filter(({ text }) => !acknowledged.has(text))
  const doubled = there.length - ids.size
  if (lost.length + unknown.length + doubled === 0) return undefined
  return `${lost.length} lost, ${doubled} doubled, ${unknown.length} that nobody was told of`
}

async function problemOfReader(
  api: Api,
  person: Account,
  room: string,
  { senders, reader }: { readonly senders: InsistentSenders; readonly reader: Wanderer },
): Promise<string | undefined> {
  const order = (await messagesOf(api, person, room)).map(({ id }) => id)
  const seen = reader.seen.get(room) ?? []
  const differs = seen.findIndex((id, at) => id !== order[at])
  if (differs >= 0 || seen.length !== order.length)
    return `${seen.length} seen of ${order.length}; they differ from message ${differs} on`
  const [sent, received] = [senders.delivered.toSorted(), reader.received.toSorted()]
  return sent.join() === received.join() ? undefined : `${received.length} messages to a device of ${sent.length}`
}
