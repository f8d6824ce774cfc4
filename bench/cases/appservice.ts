import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Account,
  type Api,
  createRoom,
  mapConcurrently,
  openApi,
  register,
  sendText,
} from '../../test/support/api.ts'
import { waitUntil } from '../../test/support/wait.ts'
import { newPrefix } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'
import { drive } from './send.ts'

export const BENCHMARK = 'appservice'
const SERVICES = 10
/** Of each service; with `BENCH_APPSERVICE_ROOMS=1000` the load that the figures in the results are for. */
const ROOMS_EACH = Number(process.env.BENCH_APPSERVICE_ROOMS ?? 50)
const PEOPLE = 64
const PER_SECOND = 500
const TICK_MS = 10

interface Receiver {
  readonly url: string
  /** Milliseconds from sending to arrival, by text. */
  readonly delays: number[]
  received(): number
  close(): Promise<void>
}

/** All services at one address, told apart by their paths. Messages say when they were sent. */
async function startReceiver(): Promise<Receiver> {
  const delays: number[] = []
  let received = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const now = performance.timeOrigin + performance.now()
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    for (const { content } of JSON.parse(Buffer.concat(chunks).toString()).events ?? []) {
      const at = Number(/^at (\d+\.\d+)/.exec(content.body ?? '')?.[1])
      if (Number.isNaN(at)) continue
      received += 1
      delays.push(now - at)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delays,
    received: () => received,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function registrationOf(number: number, url: string): object {
  const id = `svc${number}`
  return {
    id,
    url: `${url}/${id}`,
    as_token: `as_${id}`,
    hs_token: `hs_${id}`,
    sender_localpart: `_${id}_bot`,
    // As the real ones: most are a prefix.
    namespaces: {
      users: [{ regex: `@_${id}_.*`, exclusive: true }],
      aliases: [{ regex: `#_${id}_.*`, exclusive: false }],
    },
  }
}

/** What the same senders reach with no service, and with services that hear everything; then how long a message is on its way. */
export async function measureAppservice(options: BenchOptions): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-bench-'))
  const receiver = await startReceiver()
  const env = { HEARTH__APPLICATION_SERVICES__REGISTRATIONS: directory }
  const target = await openTarget(options, { env })
  const api = openApi(target.baseUrl, { connections: 64 })
  try {
    const word = newPrefix()
    const people = await mapConcurrently([...Array(PEOPLE).keys()], 8, (n) => register(api, `${word}p${n}`))
    const rooms = await mapConcurrently([...Array(SERVICES * ROOMS_EACH).keys()], 16, (n) => {
      const room_alias_name = `_svc${n % SERVICES}_${word}${n}`
      return createRoom(api, people[n % PEOPLE]!.token, { room_alias_name, preset: 'public_chat' })
    })
    const lines = people.map(({ token }, n) => `${token} ${encodeURIComponent(rooms[n]!)}`)
    await drive(target.baseUrl, lines, 3)
    const without = await throughput(target, lines, options.seconds, 'send, no services')
    for (let n = 0; n < SERVICES; n++) {
      await writeFile(join(directory, `svc${n}.yaml`), JSON.stringify(registrationOf(n, receiver.url)))
    }
    await waitUntil('the services to be registered', async () => {
      return (await api.request('GET', '/account/whoami', { token: `as_svc${SERVICES - 1}` })).status === 200
    })
    const withServices = await throughput(target, lines, options.seconds, `send, ${SERVICES} services`)
    return [without, withServices, await delivery(target, { api, people, rooms, receiver }, options.seconds)]
  } finally {
    await api.close()
    await target.close()
    await receiver.close()
    await rm(directory, { recursive: true })
  }
}

async function throughput(target: Target, lines: readonly string[], seconds: number, variant: string) {
  let figures = {}
  const cost = await costOf(target, async () => {
    const { requests, p50Ms, p99Ms, seconds: took } = await drive(target.baseUrl, lines, seconds)
    figures = { perSecond: requests / took, p50Ms, p99Ms }
    return requests
  })
  return measurement({ benchmark: BENCHMARK, variant, ...figures, ...cost })
}

interface Load {
  readonly api: Api
  readonly people: readonly Account[]
  readonly rooms: readonly string[]
  readonly receiver: Receiver
}

async function delivery(target: Target, { api, people, rooms, receiver }: Load, seconds: number) {
  const total = PER_SECOND * seconds
  // What the load before left under way is not what is measured.
  await waitUntil('the services to catch up', async () => (await settled(receiver)) === true, { timeoutMs: 600_000 })
  receiver.delays.length = 0
  const before = receiver.received()
  const sent: Promise<string>[] = []
  const start = performance.now()
  const cost = await costOf(target, async () => {
    while (sent.length < total) {
      const due = Math.min(total, Math.floor(((performance.now() - start) / 1000) * PER_SECOND))
      while (sent.length < due) sent.push(sendOne(api, people, rooms, sent.length))
      await pause(TICK_MS)
    }
    await Promise.all(sent)
    await waitUntil('all to be delivered', () => receiver.received() - before >= total, { timeoutMs: 60_000 })
    return total
  })
  const variant = `delivery at ${PER_SECOND}/s, ${SERVICES} services with ${ROOMS_EACH} rooms each`
  return measurement({ benchmark: BENCHMARK, variant, perSecond: PER_SECOND, ...latenciesOf(receiver.delays), ...cost })
}

/** Whether nothing arrives any more. */
async function settled(receiver: Receiver): Promise<boolean> {
  const before = receiver.received()
  await pause(1_000)
  return receiver.received() === before
}

function sendOne(api: Api, people: readonly Account[], rooms: readonly string[], n: number): Promise<string> {
  const at = performance.timeOrigin + performance.now()
  const room = (n * 7) % rooms.length
  return sendText(api, people[room % people.length]!.token, rooms[room]!, `d${n}`, `at ${at.toFixed(3)}`)
}
