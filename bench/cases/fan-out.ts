import { type Account, type Api, mapConcurrently, syncPath } from '../../test/support/api.ts'
import { makeCommunity, newPrefix } from '../community.ts'
import type { FanOutResult, FanOutTask } from '../drivers/fan-out.ts'
import { runDriver } from '../drivers/start.ts'
import { latenciesOf, type Measurement, measurement, percentile } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'fan-out'
const WARM_UP_ROUNDS = 3
const ROUNDS = 20
const SYNC_FILTER = { room: { timeline: { limit: 1 }, state: { lazy_load_members: true } } }

export async function measureFanOut(options: BenchOptions): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const members of options.members) {
    const target = await openTarget(options)
    try {
      measured.push(...(await measureCrowd(target, members, options.seconds)))
    } finally {
      await target.close()
    }
  }
  return measured
}

async function measureCrowd(target: Target, members: number, seconds: number): Promise<Measurement[]> {
  const { api, people, roomIds } = await makeCommunity(target, { people: members + 1, rooms: 1, isIn: () => true })
  const listeners = await mapConcurrently(people.slice(1), 8, (person) => startingPoint(api, person))
  let result: FanOutResult | undefined
  const cost = await costOf(target, async () => {
    result = await driveFanOut(target.baseUrl, {
      room: encodeURIComponent(roomIds[0]!),
      sender: people[0]!.token,
      listeners,
      sustainedSeconds: seconds,
    })
    return deliveriesOf(members, result)
  })
  await api.close()
  const { diskBytesPerOperation: _, ...shared } = cost
  return figuresOf(members, result!).map((figures) => measurement({ ...figures, ...shared }))
}

export async function startingPoint(api: Api, { token }: Account) {
  const sync = await api.call('GET', syncPath({ filter: SYNC_FILTER }), { token })
  return { token, since: String(sync.next_batch) }
}

/** The same crowd before anything that answers a sync and a send. */
export function driveFanOut(
  baseUrl: string,
  task: Pick<FanOutTask, 'room' | 'sender' | 'listeners' | 'sustainedSeconds' | 'polling' | 'sendTo'>,
): Promise<FanOutResult> {
  const { hostname, port } = new URL(baseUrl)
  return runDriver<FanOutTask, FanOutResult>('./fan-out.js', {
    ...task,
    host: hostname,
    port: Number(port),
    prefix: '/_matrix/client/v3',
    word: newPrefix(),
    rounds: WARM_UP_ROUNDS + ROUNDS,
  })
}

export const deliveriesOf = (members: number, { sustained }: FanOutResult): number =>
  (WARM_UP_ROUNDS + ROUNDS) * members + sustained.deliveries

/** The rounds without those that warm up. */
export const hotRounds = ({ rounds }: FanOutResult): FanOutResult['rounds'] => rounds.slice(WARM_UP_ROUNDS)

/** Percentiles are over the rounds: half of the messages reached the last listener within p50. */
export function figuresOf(members: number, result: FanOutResult): Measurement[] {
  const hot = hotRounds(result)
  const medianMs = percentile(
    hot.map((round) => round.medianMs),
    0.5,
  )
  const coldMs = result.rounds[0]!.lastMs
  return [
    measurement({
      benchmark: BENCHMARK,
      variant: `${members} listeners, until the last`,
      ...latenciesOf(hot.map((round) => round.lastMs)),
      note: `median listener ${medianMs.toFixed(1)} ms; first message ever ${coldMs.toFixed(1)} ms`,
    }),
    measurement({
      benchmark: BENCHMARK,
      variant: `${members} listeners, one message after another`,
      perSecond: result.sustained.deliveries / result.sustained.seconds,
      note: 'deliveries; the next message goes out when the last listener has this one',
    }),
  ]
}
