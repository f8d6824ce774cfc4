import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import pg from 'pg'
import { openApi, register } from '../../test/support/api.ts'
import type { ChildServer } from '../../test/support/child-server.ts'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { waitUntil } from '../../test/support/wait.ts'
import type { LookupResult } from '../drivers/lookups.ts'
import { startLookups } from '../drivers/start.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'identity-lookup'

/** What is asked, while nothing else happens and while the pepper is rotated. */
const LOADS = [
  { perSecond: 200, addressesPerCall: 10 },
  { perSecond: 200, addressesPerCall: 1_000 },
] as const
type Load = (typeof LOADS)[number]

/** The quota is counted, and never used up. */
const ENV = { HEARTH__IDENTITY__LOOKUP__ADDRESSES_PER_DAY: '1000000000', HEARTH__IDENTITY__LOOKUP__PEPPER_HOURS: '0' }

interface Scene {
  readonly options: BenchOptions
  readonly target: Target
  readonly own: ChildServer
  readonly client: pg.Client
  readonly token: string
}

/** Lookups by hash among many bindings, before, during and after rotations of the pepper, one of them killed in the middle. */
export async function measureIdentityLookup(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options, { env: ENV })
  const { own } = target
  if (own === undefined) throw new Error(`${BENCHMARK} rotates the pepper, so it measures a server of ours alone`)
  const client = new pg.Client(target.database())
  try {
    await client.connect()
    await bindMany(client, options.bindings)
    await rotate(own)
    const scene = { options, target, own, client, token: await identityToken(target.baseUrl) }
    const rows: Measurement[] = []
    rows.push(await measureQuiet(scene, LOADS[0], ', the first'))
    for (const load of LOADS) {
      rows.push(await measureQuiet(scene, load))
      rows.push(await measureRotation(scene, load))
    }
    rows.push(await measureBrokenRotation(scene, LOADS[1]))
    return rows
  } finally {
    await client.end()
    await target.close()
  }
}

async function bindMany(client: pg.Client, count: number): Promise<void> {
  await client.query(
    `INSERT INTO identity_binding (medium, address, user_id, bound_at)
     SELECT 'email', 'person' || n || '@bench.example', '@person' || n || ':bench.example', n FROM generate_series(1, $1::int) n`,
    [count],
  )
}

/** Of somebody with an account on the homeserver of the same process. */
async function identityToken(baseUrl: string): Promise<string> {
  const api = openApi(baseUrl)
  const { userId, token } = await register(api, 'looker')
  const openId = await api.call('POST', `/user/${encodeURIComponent(userId)}/openid/request_token`, { token, body: {} })
  const { token: identity } = await api.call('POST', '/_matrix/identity/v2/account/register', { body: openId })
  await api.close()
  return identity
}

/** The verb of an operator, as a process of its own. */
function startRotation({ dataDir, serverName }: ChildServer): ChildProcess {
  return spawn(process.execPath, [join(PROJECT_ROOT, 'dist/main.js'), 'identity', 'rotate-pepper'], {
    cwd: dataDir,
    env: { PATH: process.env.PATH, HEARTH__SERVER_NAME: serverName, HEARTH__DATA_DIR: join(dataDir, 'data') },
  })
}

/** Gives what it took and what it said. */
async function rotate(own: ChildServer): Promise<{ seconds: number; said: string }> {
  const begun = now()
  const child = startRotation(own)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += chunk))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the rotation failed: ${said}`)
  return { seconds: (now() - begun) / 1_000, said: said.trim() }
}

async function whileLookingUp(scene: Scene, load: Load, what: string, work: () => Promise<string>) {
  const { target, token, options } = scene
  let result: LookupResult | undefined
  let note = ''
  const cost = await costOf(target, async () => {
    const lookups = startLookups({ baseUrl: target.baseUrl, token, bindings: options.bindings, ...load })
    note = await work().catch(async (error: unknown) => {
      await lookups.end()
      throw error
    })
    result = await lookups.end()
    return result.calls
  })
  const { calls, seconds, latenciesMs, refused, wrong, complaints, busy } = result!
  if (wrong > 0) throw new Error(`${wrong} of ${calls} answers were wrong: ${complaints.join('; ')}`)
  return measurement({
    benchmark: BENCHMARK,
    variant: `${load.perSecond} calls/s of ${load.addressesPerCall} addresses${what}`,
    perSecond: latenciesMs.length / seconds,
    ...latenciesOf(latenciesMs),
    ...cost,
    diskBytesPerOperation: undefined,
    note: `${note}; ${calls} answers, none wrong${refused === 0 ? '' : `, ${refused} of them M_INVALID_PEPPER`}; the asking process was busy for ${Math.round(100 * busy)}% of the time`,
  })
}

async function measureQuiet(scene: Scene, load: Load, what = ''): Promise<Measurement> {
  return whileLookingUp(scene, load, what, async () => {
    await new Promise((resolve) => setTimeout(resolve, scene.options.seconds * 1_000))
    return `among ${scene.options.bindings}`
  })
}

async function measureRotation(scene: Scene, load: Load): Promise<Measurement> {
  return whileLookingUp(scene, load, ', rotating', async () => {
    const { seconds } = await rotate(scene.own)
    return `rotated within ${seconds.toFixed(1)} s`
  })
}

async function measureBrokenRotation(scene: Scene, load: Load): Promise<Measurement> {
  return whileLookingUp(scene, load, ', killed and resumed', async () => {
    const doomed = startRotation(scene.own)
    const ended = once(doomed, 'close')
    await waitUntil('half of the bindings', async () => (await hashedTo(scene.client)) > scene.options.bindings / 2, {
      timeoutMs: 120_000,
    })
    doomed.kill('SIGKILL')
    await ended
    const reached = await hashedTo(scene.client)
    const { seconds, said } = await rotate(scene.own)
    return `rotation killed at ${reached}; the next: "${said}" after ${seconds.toFixed(1)} s`
  })
}

/** How far the rotation under way has come. */
async function hashedTo(client: pg.Client): Promise<number> {
  const { rows } = await client.query(`SELECT hashed_to FROM identity_pepper WHERE standing = 'next'`)
  return Number(rows[0]?.hashed_to ?? 0)
}
