import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Account, type Api, createRoom, join, openApi, sendText, syncPath } from '../../test/support/api.ts'
import { type Bystander, noticedNote, startBystander } from '../bystander.ts'
import { registerPeople } from '../community.ts'
import { startDriver } from '../drivers/start.ts'
import type { SyncLoopResult, SyncLoopTask } from '../drivers/sync-loops.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'attack-sync'

const LOOPS = 4
const HELD = 8_000
const DATA_MB = 120
const STATE_EVENTS = 1_200
const STATE_BYTES = 60_000
const WARMING_MS = 10_000
const SETTLE_MS = 60_000
const NOTHING = { room: { rooms: [] }, account_data: { types: [] }, presence: { types: [] } }

/** What one user's syncs cost others: first syncs of very much, over and over, and thousands that are held with one token. */
export async function measureAttackSync(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const target = await openTarget(options)
  const api = openApi(target.baseUrl, { connections: 8 })
  try {
    const [hoarder, decorator, holder] = (await registerPeople(api, target, 3)) as [Account, Account, Account]
    const large = await createRoom(api, decorator.token)
    await fill(api, target, { hoarder, decorator, large })
    const bystander = await startBystander(target)
    await bystander.during(() => pause(WARMING_MS))
    const before = target.usage().server?.residentMb ?? 0
    const room = await createRoom(api, holder.token, { preset: 'public_chat' })
    await join(api, decorator.token, room)
    const rows = [
      await attack(target, bystander, options, `first syncs of ${DATA_MB} MB of account data`, {
        ...{ token: hoarder.token, loops: LOOPS, filter: '{}' },
      }),
      await attack(
        target,
        bystander,
        options,
        `first syncs of ${(STATE_EVENTS * STATE_BYTES) / 1e6} MB of room state`,
        {
          ...{ token: decorator.token, loops: LOOPS, filter: JSON.stringify({ room: { rooms: [large] } }) },
        },
      ),
      await attack(
        target,
        bystander,
        options,
        `${HELD} syncs held with one token, and a message`,
        { token: holder.token, held: HELD, since: await positionOf(api, holder) },
        () => sendText(api, decorator.token, room, 'woken', 'to all who wait'),
      ),
    ]
    await bystander.close()
    await pause(SETTLE_MS)
    const after = target.usage().server?.residentMb ?? 0
    const note = `${before.toFixed(0)} MB before, ${after.toFixed(0)} MB now`
    return [...rows, measurement({ benchmark: BENCHMARK, variant: 'a minute later', note })]
  } finally {
    await api.close()
    await target.close()
  }
}

async function positionOf(api: Api, { token }: Account): Promise<string> {
  return (await api.call('GET', syncPath({ filter: NOTHING }), { token })).next_batch
}

/** One attack, for as long as a measurement is; `act` comes in its middle. */
async function attack(
  target: Target,
  bystander: Bystander,
  { seconds }: BenchOptions,
  variant: string,
  task: Partial<SyncLoopTask> & Pick<SyncLoopTask, 'token'>,
  act?: () => Promise<unknown>,
): Promise<Measurement> {
  const { hostname, port } = new URL(target.baseUrl)
  const complete = { host: hostname, port: Number(port), loops: 0, held: 0, since: '', filter: '{}', ...task }
  const noticed = await bystander.during(async () => {
    const driver = await startDriver<SyncLoopTask, object>('./sync-loops.js', complete)
    await pause(seconds * 500)
    await act?.()
    await pause(seconds * 500)
    const result = await driver.ask<object, SyncLoopResult>({})
    driver.end()
    return result
  })
  const { answers, bytes, answered } = noticed.result
  const done = complete.loops > 0 ? `${answers} answers, ${(bytes / 1e6).toFixed(0)} MB` : `${answered} answered`
  const peak = target.usage().server?.residentMb.toFixed(0)
  return measurement({
    benchmark: BENCHMARK,
    variant,
    p50Ms: noticed.sends.p50Ms,
    p99Ms: Math.max(noticed.sends.p99Ms, noticed.deliveries.p99Ms),
    note: `${noticedNote(noticed)}; ${done}; ${peak} MB then`,
  })
}

/** As it was possible before there was a cap, or takes an evening within the limits. */
async function fill(
  api: Api,
  target: Target,
  { hoarder, decorator, large }: { hoarder: Account; decorator: Account; large: string },
): Promise<void> {
  const text = 'x'.repeat(STATE_BYTES)
  for (let index = 0; index < STATE_EVENTS; index++) {
    const path = `/rooms/${encodeURIComponent(large)}/state/org.bench.large/k${index}`
    await api.call('PUT', path, { token: decorator.token, body: { text: `${index}${text}` } })
  }
  await api.call('PUT', `/user/${encodeURIComponent(hoarder.userId)}/account_data/org.small`, {
    token: hoarder.token,
    body: {},
  })
  const client = new pg.Client(target.database())
  await client.connect()
  try {
    await client.query(
      `INSERT INTO account_data (user_nid, room_id, type, content, position)
       SELECT (SELECT user_nid FROM matrix_user WHERE user_id = $1), '', 'org.bench.' || n,
         '{"text":"' || (SELECT string_agg(md5(n || '.' || m), '') FROM generate_series(1, 32768) AS m) || '"}', 1
       FROM generate_series(1, $2::int) AS n`,
      [hoarder.userId, DATA_MB],
    )
  } finally {
    await client.end()
  }
  await target.own!.kill('SIGTERM')
  await target.own!.start()
}
