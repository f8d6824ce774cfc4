import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { openApi, sendText } from '../../test/support/api.ts'
import { type DeadServers, letLag, openDeadServers, putIntoRoom } from '../../test/support/dead-servers.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'federation-dead'

const DEAD = 10_000
/** As often as servers have failed that are gone for months. */
const FAILURES = 13
const SETTLE_MS = 3_000
const MESSAGES = 50

/** A room that ten thousand servers are in, none of which answers any more, beside the same server without them. */
export async function measureFederationDead(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const dead = await openDeadServers(DEAD)
  const target = await openTarget(options, { env: { HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8' } })
  const api = openApi(target.baseUrl)
  try {
    const [person] = await registerPeople(api, target, 1)
    const { token } = person!
    const body = { preset: 'public_chat' }
    const { room_id: roomId } = await api.call('POST', '/createRoom', { token, body })
    const send = async (): Promise<number> => {
      const begun = now()
      await sendText(api, token, roomId, newPrefix(), 'is anybody there?')
      return now() - begun
    }
    const without = await measure({ target, dead, seconds: options.seconds, send }, 'the same room without them')
    await addDead(target, roomId, dead.names)
    return [without, await measure({ target, dead, seconds: options.seconds, send }, `${DEAD} dead servers in a room`)]
  } finally {
    await api.close()
    await target.close()
    await dead.close()
  }
}

async function addDead(target: Target, roomId: string, servers: readonly string[]): Promise<void> {
  const client = new pg.Client(target.database())
  await client.connect()
  try {
    const query = (sql: string, values: unknown[]) => client.query(sql, values)
    await putIntoRoom(query, roomId, servers)
    await letLag(query, servers, FAILURES)
  } finally {
    await client.end()
  }
}

interface Scene {
  readonly target: Target
  readonly dead: DeadServers
  readonly seconds: number
  send(): Promise<number>
}

/** After a start: at rest, and when something is said. */
async function measure({ target, dead, seconds, send }: Scene, variant: string): Promise<Measurement> {
  await target.own!.kill('SIGTERM')
  await target.own!.start()
  await pause(SETTLE_MS)
  const [attempts, before] = [dead.attempts.length, target.usage().server]
  await pause(seconds * 1_000)
  const after = target.usage().server
  const perSecond = (dead.attempts.length - attempts) / seconds
  const idleShare = ((after?.cpuSeconds ?? 0) - (before?.cpuSeconds ?? 0)) / seconds
  const took: number[] = []
  for (let n = 0; n < MESSAGES; n++) took.push(await send())
  const startedInMs = target.own!.startedInMs().toFixed(0)
  const rest = `${after?.residentMb.toFixed(0)} MB, ${(100 * idleShare).toFixed(1)}% CPU, ${perSecond.toFixed(1)} attempts a second`
  return measurement({
    benchmark: BENCHMARK,
    variant,
    ...latenciesOf(took),
    serverPeakMb: target.usage().server?.peakMb,
    note: `of a send; started in ${startedInMs} ms; at rest ${rest}`,
  })
}
