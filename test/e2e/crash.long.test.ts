import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type Account,
  type Api,
  ApiError,
  createRoom,
  type Json,
  join,
  openApi,
  register,
  syncPath,
} from '../support/api.ts'
import { type ChildServer, isAlive, startChildServer } from '../support/child-server.ts'
import { waitUntil } from '../support/wait.ts'

const SENDS = Number(process.env.CRASH_SENDS ?? 150)
const SEED = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 31))
const SENDERS = 8
const ROOMS = 2
const SERVER_KILLS = 3
const TIMEOUT_MS = 60_000 + SENDS * 200

let server: ChildServer | undefined
let api: Api | undefined
let ending = new AbortController()
beforeEach(() => {
  ending = new AbortController()
})
afterEach(async () => {
  ending.abort()
  await api?.close()
  await server?.dispose()
})

interface Send {
  readonly sender: Account
  readonly roomId: string
  readonly number: number
}

interface Stage {
  readonly api: Api
  /** Aborted when the test is over, however it ended. */
  readonly ending: AbortSignal
  readonly server: ChildServer
  readonly senders: readonly Account[]
  readonly roomIds: readonly string[]
}

test(
  `${SENDS} acknowledged sends survive kill -9 of the server and of Postgres (CRASH_SEED=${SEED})`,
  async () => {
    console.log(`crash test: CRASH_SEED=${SEED} CRASH_SENDS=${SENDS} repeats this choice of moments`)
    server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' } })
    api = openApi(server.baseUrl)
    const stage = await prepare(server, api, ending.signal)
    const reader = await register(api, 'reader')
    for (const roomId of stage.roomIds) await join(api, reader.token, roomId)
    const witness = watch(stage, reader)

    const acknowledged = await sendAmidKills(stage)
    expect(acknowledged.size).toBe(SENDS)

    const stored = await readEverything(stage, reader)
    expect(sortedCounts(stored)).toEqual(onceEach(SENDS))
    for (const { number, eventId } of stored) expect(acknowledged.get(number)?.eventId).toBe(eventId)

    for (const { send, eventId } of acknowledged.values()) expect(await put(stage.api, send)).toBe(eventId)
    expect(sortedCounts(await readEverything(stage, reader))).toEqual(onceEach(SENDS))

    expect(sortedCounts(await witness.finish())).toEqual(onceEach(SENDS))
  },
  TIMEOUT_MS,
)

async function prepare(server: ChildServer, api: Api, ending: AbortSignal): Promise<Stage> {
  const senders: Account[] = []
  for (let index = 0; index < SENDERS; index += 1) senders.push(await register(api, `sender${index}`))
  const roomIds: string[] = []
  for (let index = 0; index < ROOMS; index += 1) {
    const roomId = await createRoom(api, senders[0]!.token, { preset: 'public_chat' })
    for (const sender of senders.slice(1)) await join(api, sender.token, roomId)
    roomIds.push(roomId)
  }
  return { server, api, ending, senders, roomIds }
}

type Acknowledged = Map<number, { send: Send; eventId: string }>

/** Every sender repeats a send until it is acknowledged, whatever dies meanwhile. */
async function sendAmidKills(stage: Stage): Promise<Acknowledged> {
  const acknowledged: Acknowledged = new Map()
  const kills = planKills()
  let isKilling = Promise.resolve()
  let next = 0
  const sender = async (account: Account) => {
    for (let number = next++; number < SENDS; number = next++) {
      const send = { sender: account, roomId: stage.roomIds[number % ROOMS]!, number }
      const eventId = await waitUntil(`acknowledgement of send ${number}`, () => tryPut(stage, send), {
        timeoutMs: 60_000,
      })
      acknowledged.set(number, { send, eventId })
      const kill = kills.get(acknowledged.size)
      if (kill !== undefined) isKilling = isKilling.then(() => kill(stage.server))
    }
  }
  await Promise.all(stage.senders.map(sender))
  await isKilling
  return acknowledged
}

type Kill = (server: ChildServer) => Promise<void>

/** At which numbers of acknowledged sends what is killed, while the other senders are in the middle of theirs. */
function planKills(): Map<number, Kill> {
  const random = generator(SEED)
  const moments = new Set<number>()
  while (moments.size < SERVER_KILLS + 1) moments.add(1 + Math.floor(random() * (SENDS - 1)))
  const kills: Kill[] = [...Array(SERVER_KILLS).fill(killServer)]
  kills.splice(Math.floor(random() * (SERVER_KILLS + 1)), 0, killPostgres)
  return new Map([...moments].map((moment, index) => [moment, kills[index]!]))
}

async function killServer(server: ChildServer): Promise<void> {
  await server.kill('SIGKILL')
  await server.start()
}

/** The server either brings its Postgres back by itself or gives up, as a supervisor would then see and start it again. */
async function killPostgres(server: ChildServer): Promise<void> {
  const victim = await waitUntil('the process id of Postgres', () => server.postmasterPid())
  process.kill(victim, 'SIGKILL')
  await waitUntil('the end of Postgres', () => !isAlive(victim))
  await waitUntil('another Postgres, or the end of the server', () => {
    const pid = server.postmasterPid()
    return !server.isRunning() || (pid !== undefined && pid !== victim)
  })
  if (server.isRunning()) await server.waitReady()
  else await server.start()
}

/** A small generator of numbers in [0, 1) that a seed repeats (a linear congruence, high bits). */
function generator(seed: number): () => number {
  let state = BigInt(seed)
  return () => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffff_ffff_ffff_ffffn
    return Number(state >> 33n) / 2 ** 31
  }
}

const pathOf = ({ roomId, number }: Send) => `/rooms/${encodeURIComponent(roomId)}/send/m.room.message/crash-${number}`

const put = async (api: Api, send: Send): Promise<string> => {
  const body = { msgtype: 'm.text', body: `number ${send.number}`, number: send.number }
  return (await api.call('PUT', pathOf(send), { token: send.sender.token, body, timeoutMs: 10_000 })).event_id
}

async function tryPut({ api, ending }: Stage, send: Send): Promise<string | undefined> {
  ending.throwIfAborted()
  try {
    return await put(api, send)
  } catch (error) {
    if (isPassing(error)) return undefined
    throw error
  }
}

/** What a client sees while a server is away: no connection, no answer in time, or a 5xx; anything else is a defect. */
function isPassing(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500
  const { name, code } = error as { name?: string; code?: unknown }
  return name === 'TimeoutError' || (typeof code === 'string' && !code.startsWith('ERR_'))
}

interface Seen {
  readonly number: number
  readonly eventId: string
}

const numbersIn = (events: readonly Json[]): Seen[] =>
  events
    .filter((event) => event.content.number !== undefined)
    .map((event) => ({ number: event.content.number, eventId: event.event_id }))

async function readEverything(stage: Stage, reader: Account): Promise<Seen[]> {
  const seen: Seen[] = []
  for (const roomId of stage.roomIds) {
    let from: string | undefined
    do {
      const query = new URLSearchParams({ dir: 'f', limit: '100', ...(from === undefined ? {} : { from }) })
      const path = `/rooms/${encodeURIComponent(roomId)}/messages?${query}`
      const page: Json = await stage.api.call('GET', path, { token: reader.token })
      seen.push(...numbersIn(page.chunk))
      from = page.chunk.length === 0 ? undefined : page.end
    } while (from !== undefined)
  }
  return seen
}

/** A client that syncs all the while, keeping its token over every crash. */
function watch(stage: Stage, reader: Account) {
  const seen: Seen[] = []
  const filter = { room: { timeline: { limit: 1_000 } } }
  let since: string | undefined
  let isFinishing = false

  async function turn(): Promise<void> {
    const query = since === undefined ? { filter } : { filter, since, timeout: isFinishing ? 0 : 1_000 }
    const sync = await stage.api.call('GET', syncPath(query), { token: reader.token, timeoutMs: 10_000 })
    const isFirst = since === undefined
    since = sync.next_batch
    for (const room of Object.values<Json>(sync.rooms?.join ?? {})) {
      if (!isFirst) expect(room.timeline.limited ?? false).toBe(false)
      seen.push(...numbersIn(room.timeline.events))
    }
  }

  async function tryTurn(): Promise<boolean> {
    stage.ending.throwIfAborted()
    try {
      await turn()
      return isFinishing
    } catch (error) {
      if (isPassing(error)) return false
      throw error
    }
  }

  async function run(): Promise<void> {
    await waitUntil('the end of the sends', tryTurn, { timeoutMs: TIMEOUT_MS })
    await turn()
  }

  const running = run()
  running.catch(() => undefined)
  return {
    async finish(): Promise<Seen[]> {
      isFinishing = true
      await running
      return seen
    },
  }
}

const sortedCounts = (seen: readonly Seen[]) => seen.map(({ number }) => number).toSorted((a, b) => a - b)
const onceEach = (count: number) => Array.from({ length: count }, (_, index) => index)
