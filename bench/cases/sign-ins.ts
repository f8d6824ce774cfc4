import { setTimeout as pause } from 'node:timers/promises'
import { openApi, PASSWORD } from '../../test/support/api.ts'
import { type Bystander, startBystander } from '../bystander.ts'
import { registerPeople } from '../community.ts'
import { REDIRECT, type SignInsResult, type SignInsTask } from '../drivers/sign-ins.ts'
import { startDriver } from '../drivers/start.ts'
import { type Latencies, latenciesOf, type Measurement, measurement } from '../measurement.ts'
import { openMemoryProbe } from '../memory-at-rest.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget } from '../target.ts'

export const BENCHMARK = 'sign-ins'
const PER_SECOND = 50
const PEOPLE = 20
/** After so long, memory that passwords took is to be given back. */
const REST_MS = 60_000
/** Each is somebody who sends and somebody who syncs. */
const BYSTANDERS = 5

const CLIENT = {
  client_name: 'A benchmark',
  client_uri: 'https://app.example.com/',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

interface Noticed {
  readonly sends: Latencies
  readonly deliveries: Latencies
  readonly failed: number
}

/** Ten people who send and sync while fifty others a second sign in, by OAuth and by password at its real cost. */
export async function measureSignIns(options: BenchOptions): Promise<Measurement[]> {
  const probe = openMemoryProbe()
  const target = await openTarget(options, { ...probe.wish, withRealPasswords: true, isPublic: true })
  const driver = await startDriver<object, SignInsResult>('./sign-ins.js', { kind: 'password', names: [], seconds: 0 })
  try {
    const atRest = await probe.read(target)
    const api = openApi(target.baseUrl)
    const people = await registerPeople(api, target, PEOPLE)
    const { client_id: clientId } = await api.call('POST', '/_hearth/oauth/register', { body: CLIENT })
    await api.close()
    const task: SignInsTask = {
      baseUrl: target.baseUrl,
      kind: 'oauth',
      clientId,
      password: PASSWORD,
      names: people.map(({ userId }) => userId),
      perSecond: PER_SECOND,
      seconds: options.seconds,
    }
    const bystanders: Bystander[] = []
    for (let count = 0; count < BYSTANDERS; count++) bystanders.push(await startBystander(target))
    await driver.ask<SignInsTask, SignInsResult>({ ...task, seconds: 0 })
    const idle = await noticed(bystanders, () => pause(options.seconds * 1_000))
    const rows = [row('nobody signs in', idle.seen, idle.seen)]
    for (const kind of ['oauth', 'password'] as const) {
      const before = target.usage()
      const ask = () => driver.ask<SignInsTask, SignInsResult>({ ...task, kind })
      const { seen, result } = await noticed(bystanders, ask)
      const after = target.usage()
      const cpu = ((after.server?.cpuSeconds ?? 0) - (before.server?.cpuSeconds ?? 0)) / options.seconds
      const name = `${PER_SECOND} a second by ${kind === 'oauth' ? 'OAuth' : 'password'}`
      const { p50Ms, p99Ms } = latenciesOf(result.times)
      const failures = Object.entries(result.failures).map(([why, times]) => `${times} times ${why}`)
      const note = `signed in ${result.done}, told to wait ${result.refused}, still waiting ${result.waiting}, failed ${failures.join(', ') || 0}`
      rows.push(
        row(
          name,
          seen,
          idle.seen,
          `${note}; the server took ${cpu.toFixed(2)} cores; a sign-in ${p50Ms.toFixed(0)}/${p99Ms.toFixed(0)} ms`,
        ),
      )
    }
    for (const bystander of bystanders) await bystander.close()
    if (process.env.BENCH_LOG) console.log(target.own?.output())
    const after = await probe.read(target)
    await pause(REST_MS)
    const rested = await probe.read(target)
    const mb = (memory: typeof atRest) =>
      memory === undefined
        ? '?'
        : `${memory.residentMb.toFixed(0)} MB (heap ${memory.heapMb.toFixed(0)}, buffers ${memory.externalMb.toFixed(0)})`
    rows.push(
      measurement({
        benchmark: BENCHMARK,
        variant: 'memory',
        note: `${mb(atRest)} before, ${mb(after)} at the end, ${mb(rested)} a minute later`,
      }),
    )
    return rows
  } finally {
    driver.end()
    await target.close()
    probe.close()
  }
}

/** What the bystanders notice together of what goes on. */
async function noticed<Result>(
  bystanders: readonly Bystander[],
  work: () => Promise<Result>,
): Promise<{ readonly seen: Noticed; readonly result: Result }> {
  const working = work()
  const all = await Promise.all(bystanders.map((bystander) => bystander.during(() => working)))
  const worst = (of: (each: (typeof all)[number]) => Latencies): Latencies => ({
    p50Ms: Math.max(...all.map((each) => of(each).p50Ms)),
    p99Ms: Math.max(...all.map((each) => of(each).p99Ms)),
  })
  return {
    seen: {
      sends: worst(({ sends }) => sends),
      deliveries: worst(({ deliveries }) => deliveries),
      failed: all.reduce((sum, { failed }) => sum + failed, 0),
    },
    result: await working,
  }
}

function row(variant: string, seen: Noticed, idle: Noticed, note = ''): Measurement {
  const ratio = (of: (each: Noticed) => Latencies) => (of(seen).p99Ms / of(idle).p99Ms).toFixed(2)
  const ms = ({ p50Ms, p99Ms }: Latencies) => `${p50Ms.toFixed(0)}/${p99Ms.toFixed(0)} ms`
  const others = `others send ${ms(seen.sends)} (p99 ${ratio(({ sends }) => sends)} times), sync ${ms(seen.deliveries)} (${ratio(({ deliveries }) => deliveries)} times), ${seen.failed} failed`
  return measurement({ benchmark: BENCHMARK, variant, ...seen.sends, note: `${others}${note && `; ${note}`}` })
}
