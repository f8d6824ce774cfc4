import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
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
import type { ServicesCommand, ServicesReady, ServicesReport } from '../drivers/services.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import { latenciesOf, type Measurement, measurement, now, sharedNow } from '../measurement.ts'
import { namespaceLatencies } from '../micro/namespaces.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'
import { drive } from './send.ts'

export const BENCHMARK = 'appservice'
const SERVICES = 10
/** Of each service; with `BENCH_APPSERVICE_ROOMS=1000` the load that the figures in the results are for. */
const ROOMS_EACH = Number(process.env.BENCH_APPSERVICE_ROOMS ?? 50)
const PEOPLE = 64
const PER_SECOND = 500
const TICK_MS = 2
const WARM_UP_SECONDS = 3

/** Which rooms concern a service: its own, or those of the first as for all others. */
type Interest = 'own' | 'shared'

interface Scene {
  readonly target: Target
  readonly api: Api
  readonly people: readonly Account[]
  /** Room `n` is the business of service `n % SERVICES`. */
  readonly rooms: readonly string[]
  readonly services: Driver<ServicesReady>
  /** Of the registrations. */
  readonly directory: string
}

/**
 * What the same senders reach without services and with services that hear everything: as fast as it goes, and at a pace. Without is
 * measured before and after, so that what the machine does in between does not count for either.
 */
export async function measureAppservice(options: BenchOptions): Promise<Measurement[]> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-bench-'))
  const services = await startDriver<object, ServicesReady>('./services.js', {})
  const target = await openTarget(options, { env: { HEARTH__APPLICATION_SERVICES__REGISTRATIONS: directory } })
  const api = openApi(target.baseUrl, { connections: 64 })
  try {
    const scene = await makeScene({ target, api, services, directory })
    const namespaces = { variant: '10,000 expressions and a message', ...namespaceLatencies() }
    return [...(await measureAll(scene, options.seconds)), measurement({ benchmark: BENCHMARK, ...namespaces })]
  } finally {
    await api.close()
    await target.close()
    services.end()
    await rm(directory, { recursive: true })
  }
}

async function makeScene(parts: Omit<Scene, 'people' | 'rooms'>): Promise<Scene> {
  const { api } = parts
  const word = newPrefix()
  const people = await mapConcurrently([...Array(PEOPLE).keys()], 8, (n) => register(api, `${word}p${n}`))
  const rooms = await mapConcurrently([...Array(SERVICES * ROOMS_EACH).keys()], 16, (n) => {
    const room_alias_name = `_svc${n % SERVICES}_${word}${n}`
    return createRoom(api, people[n % PEOPLE]!.token, { room_alias_name, preset: 'public_chat' })
  })
  return { ...parts, people, rooms }
}

async function measureAll(scene: Scene, seconds: number): Promise<Measurement[]> {
  const all = [...scene.rooms.keys()]
  const few = all.filter((n) => n % SERVICES === 0)
  await flood(scene, WARM_UP_SECONDS)
  const bare = [await flood(scene, seconds / 2)]
  const barePaced = [await paced(scene, all, seconds / 2)]
  await registerServices(scene, 'own')
  await warmUp(scene)
  const own = await paced(scene, all, seconds)
  const ownReport = await reportOf(scene, own.operations)
  const ownFlood = await flood(scene, seconds)
  const floodReport = await scene.services.ask<ServicesCommand, ServicesReport>({ command: 'settle' })
  await registerServices(scene, 'shared')
  await warmUp(scene)
  const shared = await paced(scene, few, seconds)
  const sharedReport = await reportOf(scene, shared.operations * SERVICES)
  await unregisterServices(scene)
  bare.push(await flood(scene, seconds / 2))
  barePaced.push(await paced(scene, all, seconds / 2))

  const each = `${SERVICES} services with ${ROOMS_EACH} rooms each`
  const same = `${SERVICES} services in the same ${ROOMS_EACH} rooms`
  return [
    line('send, no services', joined(bare)),
    line(`send, ${SERVICES} services`, ownFlood, joined(bare), floodReport),
    line(`send at ${PER_SECOND}/s, no services`, joined(barePaced)),
    line(`send at ${PER_SECOND}/s, ${each}`, own, joined(barePaced), ownReport),
    line(`send at ${PER_SECOND}/s, ${same}`, shared, joined(barePaced), sharedReport),
    deliveryLine(each, own, ownReport),
    deliveryLine(same, shared, sharedReport),
  ]
}

/** What was sent in one go. */
interface Stretch {
  readonly operations: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly serverCpuMs: number
  readonly postgresCpuMs: number
}

async function flood({ target, people, rooms }: Scene, seconds: number): Promise<Stretch> {
  const lines = people.map(({ token }, n) => `${token} ${encodeURIComponent(rooms[n]!)}`)
  return stretch(target, async () => {
    const { requests, p50Ms, p99Ms, seconds: took } = await drive(target.baseUrl, lines, seconds)
    return { operations: requests, seconds: took, p50Ms, p99Ms }
  })
}

/** Sends when it is time, whether earlier ones were answered or not; each says when it was sent. */
async function paced(scene: Scene, rooms: readonly number[], seconds: number): Promise<Stretch> {
  const operations = PER_SECOND * seconds
  const word = newPrefix()
  return stretch(scene.target, async () => {
    const start = now()
    const sent: Promise<number>[] = []
    while (sent.length < operations) {
      const due = Math.min(operations, Math.floor(((now() - start) / 1000) * PER_SECOND))
      for (let n = sent.length; n < due; n++) sent.push(sendOne(scene, rooms[(n * 7) % rooms.length]!, `${word}${n}`))
      await pause(TICK_MS)
    }
    const latencies = latenciesOf(await Promise.all(sent))
    return { operations, seconds: (now() - start) / 1000, ...latencies }
  })
}

async function sendOne({ api, people, rooms }: Scene, room: number, txnId: string): Promise<number> {
  const before = sharedNow()
  await sendText(api, people[room % PEOPLE]!.token, rooms[room]!, txnId, `at ${before.toFixed(3)}`)
  return sharedNow() - before
}

async function stretch(
  target: Target,
  work: () => Promise<Omit<Stretch, 'serverCpuMs' | 'postgresCpuMs'>>,
): Promise<Stretch> {
  let made: Omit<Stretch, 'serverCpuMs' | 'postgresCpuMs'> | undefined
  const { serverCpuMs = Number.NaN, postgresCpuMs = Number.NaN } = await costOf(target, async () => {
    made = await work()
    return made.operations
  })
  return { ...made!, serverCpuMs, postgresCpuMs }
}

/** Two of the same kind and length, as one. */
function joined(stretches: readonly Stretch[]): Stretch {
  const sum = (figure: keyof Stretch) => stretches.reduce((total, one) => total + one[figure], 0)
  const mean = (figure: keyof Stretch) => sum(figure) / stretches.length
  return {
    operations: sum('operations'),
    seconds: sum('seconds'),
    p50Ms: mean('p50Ms'),
    p99Ms: mean('p99Ms'),
    serverCpuMs: mean('serverCpuMs'),
    postgresCpuMs: mean('postgresCpuMs'),
  }
}

/** So that no room is met for the first time. */
async function warmUp(scene: Scene): Promise<void> {
  const word = newPrefix()
  await mapConcurrently(scene.rooms, 32, (roomId, n) => {
    return sendText(scene.api, scene.people[n % PEOPLE]!.token, roomId, `${word}${n}`, 'Is anybody there?')
  })
  await scene.services.ask<ServicesCommand, ServicesReport>({ command: 'settle' })
}

/** What the services were sent by the paced senders. */
async function reportOf({ services }: Scene, deliveries: number): Promise<ServicesReport> {
  const report = await services.ask<ServicesCommand, ServicesReport>({ command: 'report', deliveries })
  const count = report.delaysMs.length
  if (count !== deliveries) throw new Error(`the services were sent ${count} messages instead of ${deliveries}`)
  return report
}

const idOf = (interest: Interest, n: number): string => `${interest}${n}`

/** Puts these in the place of those there are. */
async function registerServices(scene: Scene, interest: Interest): Promise<void> {
  await removeRegistrations(scene.directory)
  for (let n = 0; n < SERVICES; n++) {
    const id = idOf(interest, n)
    const registration = {
      id,
      url: `${scene.services.ready.url}/${id}`,
      as_token: `as_${id}`,
      hs_token: `hs_${id}`,
      sender_localpart: `_svc${n}_bot`,
      // As the real ones: most are a prefix.
      namespaces: {
        users: [{ regex: `@_svc${n}_.*`, exclusive: true }],
        aliases: [{ regex: `#_svc${interest === 'own' ? n : 0}_.*`, exclusive: false }],
      },
    }
    await writeFile(join(scene.directory, `${id}.yaml`), JSON.stringify(registration))
  }
  await untilStatusOf(scene.api, idOf(interest, SERVICES - 1), 200)
}

async function unregisterServices({ api, directory }: Scene): Promise<void> {
  await removeRegistrations(directory)
  await untilStatusOf(api, idOf('shared', 0), 401)
}

async function removeRegistrations(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name))
}

async function untilStatusOf(api: Api, id: string, status: number): Promise<void> {
  await waitUntil(`${status} for ${id}`, async () => {
    return (await api.request('GET', '/account/whoami', { token: `as_${id}` })).status === status
  })
}

const times = (figure: number, before: number): string => (figure / before).toFixed(2)

function line(variant: string, made: Stretch, without?: Stretch, report?: ServicesReport): Measurement {
  const { operations, seconds, ...figures } = made
  const notes: string[] = []
  if (without !== undefined) {
    const rate = times(operations / seconds, without.operations / without.seconds)
    const [p50, p99] = [times(made.p50Ms, without.p50Ms), times(made.p99Ms, without.p99Ms)]
    notes.push(`of what it is without: rate ${rate}, p50 ${p50}, p99 ${p99}`)
    notes.push(`server CPU ${times(made.serverCpuMs, without.serverCpuMs)}`)
  }
  if (report !== undefined) {
    notes.push(`the services' own CPU ${(report.cpuMs / operations).toFixed(3)} ms`)
    notes.push(`${(operations / report.transactions).toFixed(1)} messages a transaction`)
  }
  return measurement({
    benchmark: BENCHMARK,
    variant,
    perSecond: operations / seconds,
    ...figures,
    note: notes.join('; '),
  })
}

function deliveryLine(variant: string, { operations }: Stretch, { delaysMs }: ServicesReport): Measurement {
  const note = `${delaysMs.length} deliveries of ${operations} messages`
  return measurement({ benchmark: BENCHMARK, variant: `delivery, ${variant}`, ...latenciesOf(delaysMs), note })
}
