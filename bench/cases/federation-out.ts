import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, openApi, sendText } from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import type { Deliveries, StubJoinCommand, StubJoinReady, StubJoinTask } from '../drivers/stub-join.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { socketsOf } from '../processes.ts'
import { costOf, openTarget, outboundTo, type Target } from '../target.ts'

export const BENCHMARK = 'federation-out'

const HEALTHY = 100
const DEAD = 900
const MESSAGE_EVERY_MS = 200
/** For what is under way at the end. */
const GRACE_MS = 2_000

/** Messages of a room with many servers, all of them alive, and with nine dead ones for each that lives. */
export async function measureFederationOut(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  return [...(await measureRoom(options, 0)), ...(await measureRoom(options, DEAD))]
}

async function measureRoom(options: BenchOptions, dead: number): Promise<Measurement[]> {
  const servers = HEALTHY + dead
  const driver = await startDriver<StubJoinTask, StubJoinReady>('./stub-join.js', { servers, members: servers })
  try {
    const target = await openTarget(options, { env: outboundTo(driver.ready.caFile) })
    try {
      const api = openApi(target.baseUrl)
      const [sender] = await registerPeople(api, target, 1)
      const { roomId, via } = driver.ready
      const path = `/join/${encodeURIComponent(roomId)}?server_name=${via}`
      await api.call('POST', path, { token: sender!.token, body: {} })
      await driver.ask<StubJoinCommand, object>({ command: 'die', butFor: HEALTHY })
      const of = { driver, target, api, sender: sender!, seconds: options.seconds }
      const all = `${HEALTHY} servers`
      const measured =
        dead === 0
          ? [await measure(of, all)]
          : [await measure(of, `${all} beside ${dead} that just died`), await measure(of, `${all} beside ${dead} dead`)]
      await api.close()
      return measured
    } finally {
      await target.close()
    }
  } finally {
    driver.end()
  }
}

interface Scene {
  readonly driver: Driver<StubJoinReady>
  readonly target: Target
  readonly api: Api
  readonly sender: Account
  readonly seconds: number
}

async function measure({ driver, target, api, sender, seconds }: Scene, variant: string): Promise<Measurement> {
  const messages = (seconds * 1_000) / MESSAGE_EVERY_MS
  const prefix = newPrefix()
  const pid = target.own!.pid()
  let sockets = 0
  const { diskBytesPerOperation: _, ...cost } = await costOf(target, async () => {
    for (let n = 0; n < messages; n++) {
      await sendText(api, sender.token, driver.ready.roomId, `${prefix}-${n}`, `sent ${Date.now()}`)
      sockets = Math.max(sockets, socketsOf(pid))
      await pause(MESSAGE_EVERY_MS)
    }
    await pause(GRACE_MS)
    return messages
  })
  const { latenciesMs } = await driver.ask<StubJoinCommand, Deliveries>({ command: 'report' })
  const lost = messages * HEALTHY - latenciesMs.length
  return measurement({
    benchmark: BENCHMARK,
    variant,
    ...latenciesOf(latenciesMs),
    ...cost,
    note: `from the send until it is there; CPU per message; ${sockets} sockets at most${lost > 0 ? `; ${lost} still to come` : ''}`,
  })
}
