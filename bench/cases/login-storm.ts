import { type Api, mapConcurrently, openApi, PASSWORD, sendText, syncPath } from '../../test/support/api.ts'
import { makeCommunity, newPrefix } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget } from '../target.ts'

export const BENCHMARK = 'login-storm'
const AT_ONCE = 200
/** Sooner than the server asks for, so that its queue is always full. */
const RETRY_MS = 500

interface Times {
  readonly send: number[]
  readonly sync: number[]
}

/** Sends and syncs while 200 people log in at once, with password hashing at its real cost, and while nobody does. */
export async function measureLoginStorm(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options, { withRealPasswords: true })
  try {
    const { api, people, roomIds } = await makeCommunity(target, { people: 4, rooms: 1, isIn: () => true })
    const { token } = people[0]!
    const roomId = roomIds[0]!
    await timesWhile(api, token, roomId, untilOver(1))
    const idle = await timesWhile(api, token, roomId, untilOver(options.seconds))
    let logins = 0
    const over = untilOver(options.seconds)
    // Connections of their own: what waits in the client is not the server's delay.
    const crowd = openApi(target.baseUrl, { connections: AT_ONCE })
    const storm = mapConcurrently(Array.from({ length: AT_ONCE }), AT_ONCE, async (_, index) => {
      while (!over()) {
        const identifier = { type: 'm.id.user', user: people[index % people.length]!.userId }
        const body = { type: 'm.login.password', identifier, password: PASSWORD, device_id: `STORM${index}` }
        const { status } = await crowd.request('POST', '/login', { body })
        if (status === 200) logins += 1
        else await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    })
    const busy = await timesWhile(api, token, roomId, over)
    // Who still waits is sent away: it would take as long again.
    const ended = storm.catch(() => {})
    await crowd.close()
    await ended
    await api.close()
    return (['send', 'sync'] as const).flatMap((name) => rows(name, idle[name], busy[name], logins / options.seconds))
  } finally {
    await target.close()
  }
}

function untilOver(seconds: number): () => boolean {
  const deadline = performance.now() + seconds * 1_000
  return () => performance.now() > deadline
}

/** One client that sends and syncs, one after the other, twenty times a second at most. */
async function timesWhile(api: Api, token: string, roomId: string, isOver: () => boolean): Promise<Times> {
  const times: Times = { send: [], sync: [] }
  const prefix = newPrefix()
  let since: string | undefined
  for (let n = 0; !isOver(); n++) {
    const begun = performance.now()
    await sendText(api, token, roomId, `${prefix}-${n}`, 'x')
    const sent = performance.now()
    const answer = await api.call('GET', syncPath(since === undefined ? {} : { since }), { token })
    since = answer.next_batch
    const synced = performance.now()
    times.send.push(sent - begun)
    times.sync.push(synced - sent)
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, 50 - (synced - begun))))
  }
  return times
}

function rows(name: string, idle: readonly number[], busy: readonly number[], loginsPerSecond: number): Measurement[] {
  const [quiet, stormy] = [latenciesOf(idle), latenciesOf(busy)]
  const ratio = (stormy.p99Ms / quiet.p99Ms).toFixed(2)
  return [
    measurement({ benchmark: BENCHMARK, variant: `${name}, idle`, ...quiet }),
    measurement({
      benchmark: BENCHMARK,
      variant: `${name}, ${AT_ONCE} logins at once`,
      ...stormy,
      note: `p99 ${ratio} times idle; ${loginsPerSecond.toFixed(1)} logins/s, the others told to wait`,
    }),
  ]
}
