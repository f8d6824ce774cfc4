import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Account, type Api, createRoom, join, openApi, register, syncPath } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Haproxy, hasHaproxy, startHaproxy } from '../support/haproxy.ts'
import { type Nodes, startNodes } from '../support/nodes.ts'
import { waitUntil } from '../support/wait.ts'

/** How often each node is restarted: `ROLLING_ROUNDS=10` for more. */
const ROUNDS = Number(process.env.ROLLING_ROUNDS ?? 1)
const NODES = 3
const SENDERS = 4
/** How often each of them sends, whether the one before was answered or not. */
const EVERY_MS = 100
/** Of so many messages one is read, by a POST, which nothing may repeat. */
const READ_EVERY = 5
const SLIDING = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'
/** Of requests that do not wait for news. */
const MAX_P99_MS = 1_000
/** With more processes than this that want each core, the other ones are what requests wait for. */
const BUSY = 1

const isThere = hasHaproxy()
let database: TestDatabase
let cluster: Nodes
let haproxy: Haproxy
let api: Api

beforeAll(async () => {
  if (!isThere) return
  database = await createTestDatabase()
  cluster = await startNodes({ count: NODES, url: () => database.url })
  haproxy = await startHaproxy(
    'haproxy.cfg',
    cluster.nodes.map(({ baseUrl }) => new URL(baseUrl).host),
  )
  api = openApi(`http://127.0.0.1:${haproxy.port}`, { connections: 256 })
  await allUp()
})

afterAll(async () => {
  if (!isThere) return
  await api?.close()
  await haproxy?.close()
  await cluster?.close()
  await database.drop()
})

/** As whoever restarts a node waits, before they go on to the next one. */
const allUp = () =>
  waitUntil('all nodes in the balancer', async () => {
    const rows = await haproxy.statistics()
    return rows.filter(({ svname = '', status }) => svname.startsWith('server') && status === 'UP').length === NODES
  })

interface Reader {
  readonly seen: string[]
  readonly done: Promise<void>
}

/** Holds syncs, one after another, until it has seen a message that says so. */
function startReader({ token }: Account, since: string, problems: string[]): Reader {
  const seen: string[] = []
  const read = async () => {
    for (let from = since; seen.at(-1) !== 'the end'; ) {
      const path = syncPath({ since: from, timeout: 30_000, filter: { room: { timeline: { limit: 1000 } } } })
      const { status, body } = await api.request('GET', path, { token })
      if (status !== 200) {
        problems.push(`sync: ${status} ${JSON.stringify(body)}`)
        await pause(EVERY_MS)
        continue
      }
      from = body.next_batch
      const rooms = Object.values(body.rooms?.join ?? {}) as { timeline: { events: Message[] } }[]
      for (const { timeline } of rooms)
        for (const { type, content } of timeline.events) if (type === 'm.room.message') seen.push(content.body)
    }
  }
  return { seen, done: read() }
}

/** Holds sliding syncs, which are POST requests, until it has seen the last message. */
async function readBySliding({ token }: Account, room: string, problems: string[]): Promise<number> {
  const body = { lists: { all: { ranges: [[0, 0]], timeline_limit: 1, required_state: [] } } }
  let count = 0
  for (let pos = ''; ; count++) {
    const query = pos === '' ? '' : `?timeout=30000&pos=${encodeURIComponent(pos)}`
    const answer = await api.request('POST', `${SLIDING}${query}`, { token, body }).catch((error: Error) => {
      problems.push(`sliding sync: ${error.message}`)
      return { status: 0, body: {} }
    })
    if (answer.status === 200) pos = answer.body.pos
    else {
      problems.push(`sliding sync: ${answer.status} ${JSON.stringify(answer.body)}`)
      await pause(EVERY_MS)
    }
    const last: Message | undefined = answer.body.rooms?.[room]?.timeline?.at(-1)
    if (last?.content.body === 'the end') return count
  }
}

interface Message {
  readonly type: string
  readonly content: { readonly body: string }
}

/** Sends at an even rate, whatever the answers take, until it is stopped. Each is sent once: nothing is repeated here. */
function startSending({ token }: Account, room: string, name: string, problems: string[]) {
  const tookMs: number[] = []
  const sent: string[] = []
  const under: Promise<void>[] = []
  let isOver = false
  const path = (n: number) => `/rooms/${encodeURIComponent(room)}/send/m.room.message/${name}-${n}`
  const read = async (eventId: string) => {
    const begun = performance.now()
    const receipt = `/rooms/${encodeURIComponent(room)}/receipt/m.read/${encodeURIComponent(eventId)}`
    const { status, body } = await api.request('POST', receipt, { token, body: {} })
    tookMs.push(performance.now() - begun)
    if (status !== 200) problems.push(`${receipt}: ${status} ${JSON.stringify(body)}`)
  }
  const send = async (n: number, due: number) => {
    const text = `${name}-${n}`
    const { status, body } = await api.request('PUT', path(n), { token, body: { msgtype: 'm.text', body: text } })
    tookMs.push(performance.now() - due)
    if (status !== 200) problems.push(`${text}: ${status} ${JSON.stringify(body)}`)
    else {
      sent.push(text)
      if (n % READ_EVERY === 0) await read(body.event_id)
    }
  }
  const sending = (async () => {
    const begun = performance.now()
    for (let n = 0; !isOver; n++) {
      const due = begun + n * EVERY_MS
      await pause(Math.max(0, due - performance.now()))
      under.push(send(n, due).catch((error: Error) => void problems.push(`${name}-${n}: ${error.message}`)))
    }
    await Promise.all(under)
  })()
  return {
    tookMs,
    sent,
    async stop() {
      isOver = true
      await sending
    },
  }
}

/** What HAProxy says of requests: those that were answered with 200, and those that were not, or whose connection broke. */
function requestsIn(log: string): { good: number; bad: string[] } {
  let good = 0
  const bad: string[] = []
  for (const line of log.split('\n')) {
    const [, status, ending] = /\s(-?\d{1,3}) \d+ - - (\S{4}) /.exec(line) ?? []
    if (status === '200' && ending === '----') good++
    else if (status !== undefined) bad.push(line)
  }
  return { good, bad }
}

it.skipIf(!isThere)(
  `all ${NODES} nodes are restarted in turn, and nobody behind the balancer notices`,
  {
    timeout: 60_000 + ROUNDS * 60_000,
  },
  async () => {
    const people: Account[] = []
    for (let n = 0; n < SENDERS; n++) people.push(await register(api, `person${n}`))
    const room = await createRoom(api, people[0]!.token, { preset: 'public_chat' })
    for (const { token } of people.slice(1)) await join(api, token, room)
    const since = (await api.call('GET', syncPath({}), { token: people[0]!.token })).next_batch as string

    const problems: string[] = []
    const readers = people.map((person) => startReader(person, since, problems))
    const sliding = readBySliding(people[0]!, room, problems)
    const senders = people.map((person, n) => startSending(person, room, `${n}`, problems))
    for (let round = 0; round < ROUNDS; round++) {
      for (const node of cluster.nodes) {
        await node.kill('SIGTERM')
        await node.start()
        await allUp()
      }
    }
    for (const sender of senders) await sender.stop()
    const end = `/rooms/${encodeURIComponent(room)}/send/m.room.message/the-end`
    await api.call('PUT', end, { token: people[0]!.token, body: { msgtype: 'm.text', body: 'the end' } })
    for (const { done } of readers) await done
    expect(await sliding).toBeGreaterThan(NODES)

    const { good, bad } = requestsIn(haproxy.log())
    expect({ problems, bad }).toEqual({ problems: [], bad: [] })
    const rows = (await haproxy.statistics()).filter(({ svname }) => svname === 'BACKEND' || svname === 'FRONTEND')
    for (const { econ, eresp, hrsp_5xx } of rows) expect([econ || '0', eresp || '0', hrsp_5xx]).toEqual(['0', '0', '0'])
    const sent = senders.flatMap((sender) => sender.sent)
    expect(good).toBeGreaterThan(sent.length)
    const tookMs = senders.flatMap((sender) => sender.tookMs).toSorted((one, other) => one - other)
    const at = (share: number) => Math.round(tookMs[Math.floor(tookMs.length * share)]!)
    console.log(`${sent.length} messages: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(0.99999)} ms`)
    for (const { seen } of readers) {
      expect(seen).toEqual(readers[0]!.seen)
      expect(seen.toSorted()).toEqual([...sent, 'the end'].toSorted())
    }
    if (loadavg()[0]! < BUSY * availableParallelism()) expect(at(0.99)).toBeLessThan(MAX_P99_MS)
    else console.warn('this machine is too busy for a look at how long requests took')
  },
)
