import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openReceivingServer, type ReceivingServer } from '../storage/receiving-server.ts'

export const BENCHMARK = 'receive'

const EVENTS = 4_000
const WARM_UP = 500
/** As many as one transaction of the federation holds. */
const EVENTS_PER_TRANSACTION = 50

/** Events of another server: read, checked, judged, placed and stored; without HTTP. That of others cannot be measured from outside. */
export async function measureReceive(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const server = await openReceivingServer()
  try {
    return [
      await measure(server, 'messages in one room', 1, 'linear'),
      await measure(server, 'messages in 10 rooms at once', 10, 'linear'),
      await measure(server, 'of ten events two side by side, all state', 1, 'forked'),
    ]
  } finally {
    await server.remove()
  }
}

async function measure(
  server: ReceivingServer,
  variant: string,
  rooms: number,
  shape: 'linear' | 'forked',
): Promise<Measurement> {
  const each = EVENTS / rooms
  const histories = await Promise.all(
    Array.from({ length: rooms }, () => server.history(shape, WARM_UP / rooms + each)),
  )
  await Promise.all(histories.map((history) => history.send(WARM_UP / rooms, EVENTS_PER_TRANSACTION)))
  const times: number[] = []
  const begun = now()
  await Promise.all(histories.map((history) => history.send(each, EVENTS_PER_TRANSACTION, (ms) => times.push(ms))))
  const seconds = (now() - begun) / 1000
  return measurement({
    benchmark: BENCHMARK,
    variant,
    perSecond: EVENTS / seconds,
    ...latenciesOf(times),
    note: `times are of transactions of ${EVENTS_PER_TRANSACTION} events`,
  })
}
