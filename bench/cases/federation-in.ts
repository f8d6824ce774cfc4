import { createRoom, openApi } from '../../test/support/api.ts'
import { registerPeople } from '../community.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import type { SendResult, SendTask, StubSendersReady, StubSendersTask } from '../drivers/stub-senders.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, outboundTo, type Target } from '../target.ts'

export const BENCHMARK = 'federation-in'

const SERVERS = 10
const PER_TRANSACTION = 50
const EVENTS_EACH = 2_000
const WARM_UP_EACH = 250

/** Signed transactions of several servers at once, each in a room of its own, over HTTP and to disk. */
export async function measureFederationIn(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const driver = await startDriver<StubSendersTask, StubSendersReady>('./stub-senders.js', { servers: SERVERS })
  try {
    const target = await openTarget(options, { env: outboundTo(driver.ready.caFile) })
    try {
      await send(driver, target, WARM_UP_EACH, false)
      return [await measure(driver, target, 'linear', false), await measure(driver, target, 'a fork every 50', true)]
    } finally {
      await target.close()
    }
  } finally {
    driver.end()
  }
}

async function measure(
  driver: Driver<StubSendersReady>,
  target: Target,
  shape: string,
  isForked: boolean,
): Promise<Measurement> {
  let result: SendResult | undefined
  const cost = await costOf(target, async () => {
    result = await send(driver, target, EVENTS_EACH, isForked)
    return EVENTS_EACH * SERVERS
  })
  const { seconds, transactionsMs } = result!
  return measurement({
    benchmark: BENCHMARK,
    variant: `${SERVERS} servers, ${shape}`,
    perSecond: (EVENTS_EACH * SERVERS) / seconds,
    ...latenciesOf(transactionsMs),
    ...cost,
    note: `events; times are of transactions of ${PER_TRANSACTION}; the other servers have the same cores`,
  })
}

async function send(
  driver: Driver<StubSendersReady>,
  target: Target,
  eventsEach: number,
  isForked: boolean,
): Promise<SendResult> {
  const api = openApi(target.baseUrl)
  const [maker] = await registerPeople(api, target, 1)
  const roomIds: string[] = []
  for (let n = 0; n < SERVERS; n++) {
    roomIds.push(await createRoom(api, maker!.token, { preset: 'public_chat', room_version: '11' }))
  }
  await api.close()
  const { baseUrl } = target
  const result = await driver.ask<SendTask, SendResult>({
    ...{ baseUrl, serverName: 'localhost', roomIds, eventsEach, perTransaction: PER_TRANSACTION, isForked },
  })
  if (result.complaints.length > 0) throw new Error(`events were not taken: ${result.complaints.join('; ')}`)
  return result
}
