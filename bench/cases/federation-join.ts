import pg from 'pg'
import { signingKeyFromSeed, verifySignature } from '../../src/core/signing/key.ts'
import { type Api, sendText, syncPath } from '../../test/support/api.ts'
import { waitUntil } from '../../test/support/wait.ts'
import { makeCommunity, newPrefix, registerPeople } from '../community.ts'
import { startDriver } from '../drivers/start.ts'
import type { StubJoinReady, StubJoinTask } from '../drivers/stub-join.ts'
import { watchOtherUsers } from '../federation/other-users.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, outboundTo, type Target } from '../target.ts'

export const BENCHMARK = 'federation-join'

const SERVERS = 100
const OTHER_USERS = 4
const CALM_MS = 1_000
const LIMIT_MS = 300_000
const CHECKED = 4_000

/** A room of many members is joined through another server, while others of ours go on. */
export async function measureFederationJoin(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const driver = await startDriver<StubJoinTask, StubJoinReady>('./stub-join.js', {
    servers: SERVERS,
    members: options.remoteMembers,
  })
  try {
    const target = await openTarget(options, { env: outboundTo(driver.ready.caFile) })
    try {
      return await measure(target, driver.ready, options.remoteMembers)
    } finally {
      await target.close()
    }
  } finally {
    driver.end()
  }
}

async function measure(target: Target, { roomId, via }: StubJoinReady, members: number): Promise<Measurement[]> {
  const { api, people, roomIds } = await makeCommunity(target, { people: OTHER_USERS, rooms: 1, isIn: () => true })
  const [joiner] = await registerPeople(api, target, 1)
  const others = watchOtherUsers(api, people, roomIds[0]!)
  const client = new pg.Client(target.database())
  await client.connect()
  try {
    await new Promise((resolve) => setTimeout(resolve, CALM_MS))
    const signaturesMs = members * checkMs()
    const before = latenciesOf(others.syncsMs())
    const cpu = target.usage()
    const begun = now()
    const path = `/join/${encodeURIComponent(roomId)}?server_name=${via}`
    await api.call('POST', path, { token: joiner!.token, body: {}, timeoutMs: LIMIT_MS })
    const joinedMs = now() - begun
    await use(api, joiner!.token, roomId)
    const usableMs = now() - begun
    await waitUntil('all members', () => isFilled(client, roomId), { timeoutMs: LIMIT_MS, everyMs: 20 })
    const wholeMs = now() - begun
    const meanwhile = latenciesOf(others.syncsMs())
    const { server, postgres } = target.usage()
    const joined = await countJoined(client, roomId)
    if (joined !== members + 1) throw new Error(`${joined} members instead of ${members + 1}`)
    const cpuSeconds = (server?.cpuSeconds ?? 0) - (cpu.server?.cpuSeconds ?? 0)
    const size = `a room of ${members.toLocaleString('en')}`
    return [
      measurement({ benchmark: BENCHMARK, variant: `${size}, joined`, p50Ms: joinedMs }),
      measurement({ benchmark: BENCHMARK, variant: `${size}, synced and written to`, p50Ms: usableMs }),
      measurement({
        benchmark: BENCHMARK,
        variant: `${size}, all verified and stored`,
        p50Ms: wholeMs,
        perSecond: (members * 1_000) / wholeMs,
        serverPeakMb: server?.peakMb,
        postgresMb: postgres?.proportionalMb,
        note: `once; a core checks so many signatures in ${(signaturesMs / 1_000).toFixed(1)} s; ${cpuSeconds.toFixed(1)} s of CPU in the server, ${((postgres?.cpuSeconds ?? 0) - (cpu.postgres?.cpuSeconds ?? 0)).toFixed(1)} s in Postgres; the other server has the same cores`,
      }),
      measurement({
        benchmark: BENCHMARK,
        variant: 'syncs of others meanwhile',
        ...meanwhile,
        note: `p99 before ${before.p99Ms.toFixed(1)} ms`,
      }),
    ]
  } finally {
    await client.end()
    await others.end()
    await api.close()
  }
}

/** What the machine takes today for one signature, alone: a figure to see the others by. */
function checkMs(): number {
  const key = signingKeyFromSeed('ed25519:yardstick', Buffer.alloc(32, 'yardstick'))
  const text = 'x'.repeat(600)
  const signature = key.sign(text)
  const begun = now()
  for (let n = 0; n < CHECKED; n++) verifySignature(key.publicKey, text, signature)
  return (now() - begun) / CHECKED
}

/** What somebody does who just came into a room. */
async function use(api: Api, token: string, roomId: string): Promise<void> {
  const filter = { room: { timeline: { limit: 20 }, state: { lazy_load_members: true } } }
  const { rooms } = await api.call('GET', syncPath({ filter }), { token })
  if (rooms?.join?.[roomId] === undefined) throw new Error('the room is not in the sync of who joined it')
  await sendText(api, token, roomId, newPrefix(), 'hello')
}

async function isFilled(client: pg.Client, roomId: string): Promise<boolean> {
  const text = 'SELECT filled_at FROM room_filling JOIN room USING (room_nid) WHERE room_id = $1'
  return (await client.query(text, [roomId])).rows[0]?.filled_at > 0
}

async function countJoined(client: pg.Client, roomId: string): Promise<number> {
  const { rows } = await client.query(
    `SELECT count(*)::int AS members FROM room_member JOIN room USING (room_nid) WHERE room_id = $1 AND membership = 'join'`,
    [roomId],
  )
  return rows[0].members
}
