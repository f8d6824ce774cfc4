import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { NODE_LEASE_MS } from '../../src/domain/limits/cluster.ts'
import { findNode } from '../../src/store/cluster/nodes.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { WRITER } from '../../src/store/db/writer-lock.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { Dice } from '../federation/dice.ts'
import { type Account, createRoom, join as joinRoom, register, syncPath } from '../support/api.ts'
import type { ChildServer } from '../support/child-server.ts'
import { copyCluster } from '../support/cluster.ts'
import { type Cuttable, startCuttable } from '../support/cuttable.ts'
import { freePort } from '../support/free-port.ts'
import { messagesOf, startInsistentSenders, startWanderer, type Wanderer } from '../support/insistent.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { waitUntil } from '../support/wait.ts'

/** `CLUSTER_KILLS=100 CLUSTER_SEED=7` for more. */
const KILLS = Number(process.env.CLUSTER_KILLS ?? 6)
const SEED = Number(process.env.CLUSTER_SEED ?? 1)
const NODES = 3
const SENDERS = 4
const ROOMS = 2
const READERS = 2
/** So many messages between two failures. */
const GOING_ON = 60
/** How long a node is frozen that no other one replaces, and how long a line is cut: longer than a lease. */
const LONG_MS = 15_000
/** How often it is the node that serves to which something happens. */
const HOLDER_SHARE = 0.7
/** How long a client waits for a node that cannot reach the one that serves. */
const CUT_MS = 40_000
const POSTGRES_AWAY_MS = 10_000

/** What happens, in an order that the seed decides: each of these once before any of them again. */
const WAYS = ['kill -9', 'SIGTERM', 'freeze', 'no Postgres', 'cut from each other', 'cut from Postgres'] as const

let directory: string
let postgres: EmbeddedPostgres
let db: Database
let cluster: Nodes
/** Between each node and Postgres. */
const lines: Cuttable[] = []
/** Between the other nodes and each one. */
const links: Cuttable[] = []

const startPostgres = () =>
  startEmbeddedPostgres({
    directory: join(directory, 'postgres'),
    uid: process.getuid?.() ?? 0,
    log: pino({ level: 'silent' }),
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
  })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-kills-'))
  await copyCluster(process.env.BLANK_CLUSTER!, join(directory, 'postgres'))
  postgres = await startPostgres()
  const { host, port, user, database } = postgres.connection
  db = openDatabase({ connection: postgres.connection, poolSize: 2 })
  const ports: number[] = []
  for (let n = 0; n < NODES; n++) {
    lines.push(await startCuttable({ path: `${host}/.s.PGSQL.${port}` }))
    ports.push(await freePort())
    links.push(await startCuttable({ host: '127.0.0.1', port: ports[n]! }))
  }
  cluster = await startNodes({
    count: NODES,
    url: (n) => `postgres://${user}@127.0.0.1:${lines[n]!.port}/${database}`,
    env: (n) => ({ HEARTH__CLUSTER__PORT: `${ports[n]}` }),
  })
  await leadThroughLinks(ports)
}, 180_000)

afterAll(async () => {
  for (const line of [...lines, ...links]) line.mend()
  await cluster?.close()
  for (const line of [...lines, ...links]) await line.close()
  await db?.close()
  await postgres?.stop()
  await rm(directory, { recursive: true, force: true })
})

/** What a node says of where it listens, the database turns into the line that leads there and can be cut. */
async function leadThroughLinks(ports: readonly number[]): Promise<void> {
  const pairs = ports.map((port, n) => `WHEN '127.0.0.1:${port}' THEN '127.0.0.1:${links[n]!.port}'`).join(' ')
  await db.query(`CREATE FUNCTION linked() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.address := CASE NEW.address ${pairs} ELSE NEW.address END; RETURN NEW; END $$`)
  await db.query('CREATE TRIGGER linked BEFORE INSERT OR UPDATE ON node FOR EACH ROW EXECUTE FUNCTION linked()')
  await db.query('UPDATE node SET address = address')
}

const isReady = ({ baseUrl }: ChildServer): Promise<boolean> =>
  fetch(`${baseUrl}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  )

/** The number of the node that serves; undefined while nobody can know. */
async function holderNow(): Promise<number | undefined> {
  const { address = '' } = (await findNode(db, WRITER)) ?? {}
  const found = links.findIndex(({ port }) => address.endsWith(`:${port}`))
  return found < 0 ? undefined : found
}

/** Whether a node has renewed its lease since it failed, or another one took it: it is long enough for what comes next. */
const isHeld = async (): Promise<boolean> => ((await findNode(db, WRITER))?.left_ms ?? 0) > NODE_LEASE_MS / 2

const fenceNow = async (): Promise<number> => (await findNode(db, WRITER))!.fence

/** Keeps a node from going on, until another one has its place if it had it. */
async function withhold(node: ChildServer, begin: () => void, end: () => void): Promise<void> {
  const before = await fenceNow()
  begin()
  const isReplaced = await waitUntil('another node', async () => (await fenceNow()) > before, {
    timeoutMs: LONG_MS,
  }).catch(() => false)
  end()
  // The one that served ends when it learns that another one does; one that stood by goes on.
  await waitUntil('its end, or its readiness', () => (isReplaced ? !node.isRunning() : isReady(node)))
}

/** As a service manager does: a node that finds the database away when it starts ends, and is started again. */
const startLikeManager = (node: ChildServer) =>
  waitUntil(
    `a start:\n${node.output().slice(-2_000)}`,
    () =>
      node.start().then(
        () => true,
        () => false,
      ),
    { timeoutMs: 120_000, everyMs: 1_000 },
  )

/** A node that reaches Postgres and not the one that serves says so, to balancers and to clients, in a time that both can wait. */
async function cutFromEachOther(): Promise<void> {
  for (const link of links) link.cut()
  const holder = await holderNow()
  const others = cluster.apis.filter((_, n) => n !== holder)
  const refused = others.map(async (api) => {
    const asked = () => api.request('GET', '/account/whoami', { timeoutMs: CUT_MS })
    expect((await asked()).status).toBe(503)
    expect((await fetch(`${api.baseUrl}/health/ready`)).status).toBe(503)
  })
  // As a balancer does, which makes them look.
  let isOver = false
  const looking = (async () => {
    while (!isOver) await Promise.all([...cluster.nodes.map(isReady), pause(500)])
  })()
  await Promise.all(refused).finally(() => {
    isOver = true
  })
  await looking
  for (const link of links) link.mend()
}

async function disturb(way: (typeof WAYS)[number], n: number): Promise<void> {
  const node = cluster.nodes[n]!
  if (way === 'kill -9') await node.kill('SIGKILL')
  if (way === 'SIGTERM') await node.kill('SIGTERM')
  if (way === 'freeze') {
    const signal = (name: NodeJS.Signals) => () => void process.kill(node.pid(), name)
    await withhold(node, signal('SIGSTOP'), signal('SIGCONT'))
  }
  if (way === 'cut from Postgres') await withhold(node, lines[n]!.cut, lines[n]!.mend)
  if (way === 'cut from each other') await cutFromEachOther()
  if (way === 'no Postgres') {
    await postgres.stop()
    await pause(POSTGRES_AWAY_MS)
    postgres = await startPostgres()
  }
  // While no lease runs, a node that is ready may lose its place to another one, and end.
  await waitUntil('a lease', isHeld, { timeoutMs: 60_000 })
  for (const each of cluster.nodes) {
    await waitUntil('its readiness, or its end', async () => !each.isRunning() || isReady(each))
    if (!each.isRunning()) await startLikeManager(each)
  }
}

it(`nothing acknowledged is lost, doubled or forked while nodes and lines fail (${KILLS} times, seed ${SEED})`, {
  timeout: 180_000 + KILLS * 90_000,
}, async () => {
  const dice = new Dice(SEED)
  const { apis } = cluster
  const people: Account[] = []
  for (let n = 0; n < SENDERS; n++) people.push(await register(apis[n % NODES]!, `sender${n}`))
  const rooms: string[] = []
  for (let n = 0; n < ROOMS; n++) {
    const room = await createRoom(apis[n]!, people[0]!.token, { preset: 'public_chat' })
    for (const { token } of people.slice(1)) await joinRoom(apis[n]!, token, room)
    rooms.push(room)
  }
  const readers: Account[] = people.slice(0, READERS)
  const wanderers: Wanderer[] = []
  for (const reader of readers) {
    const { next_batch } = await apis[0]!.call('GET', syncPath({}), { token: reader.token })
    wanderers.push(startWanderer(apis, reader, next_batch))
  }
  onTestFinished(async () => {
    await Promise.all([senders.stop().catch(() => {}), ...wanderers.map((wanderer) => wanderer.stop())])
  })
  const senders = startInsistentSenders({ apis, people, rooms, listener: readers[0]!, pauseMs: 20 })

  let order: (typeof WAYS)[number][] = []
  const happened: string[] = []
  for (let count = 0; count < KILLS; count++) {
    if (order.length === 0) order = dice.shuffled(WAYS)
    const before = senders.acknowledged.size
    const way = order.pop()!
    happened.push(way)
    const any = dice.below(NODES)
    await disturb(way, dice.chance(HOLDER_SHARE) ? ((await holderNow()) ?? any) : any)
    await waitUntil(
      `sends that go on after ${happened.join(', ')}`,
      () => senders.acknowledged.size > before + GOING_ON,
      {
        timeoutMs: 60_000,
      },
    )
  }
  await senders.stop()
  for (const wanderer of wanderers) await wanderer.finish()

  const { acknowledged, delivered } = senders
  const rows = await db.query<{ event_id: string; json: string }>(
    `SELECT event_id, json FROM event WHERE type = 'm.room.message'`,
  )
  const stored = new Map(rows.map(({ event_id, json }) => [JSON.parse(json).content.body as string, event_id]))
  expect(stored.size).toBe(rows.length)
  expect(stored).toEqual(acknowledged)
  for (const room of rooms) {
    const there = (await messagesOf(apis[0]!, people[0]!, room)).map(({ id }) => id)
    for (const { seen } of wanderers) expect(seen.get(room)).toEqual(there)
  }
  expect(wanderers.flatMap(({ seen }) => [...seen.values()].flat())).toHaveLength(READERS * acknowledged.size)
  expect(wanderers[0]!.received.toSorted()).toEqual([...delivered].toSorted())
  expect(await db.query('SELECT room_nid FROM room WHERE cardinality(extremities) <> 1')).toEqual([])
  console.log(`${acknowledged.size} messages, ${await fenceNow()} places taken, after ${happened.join(', ')}`)
})
