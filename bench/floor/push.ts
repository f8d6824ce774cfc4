import { Agent, request } from 'node:https'
import type { GatewayCommand, GatewayReady, GatewayReport } from '../drivers/push-gateway.ts'
import type { Driver } from '../drivers/start.ts'
import { latenciesOf, type Measurement, measurement, sharedNow } from '../measurement.ts'

/** As many as the server opens. */
const CONNECTIONS = 64
const NOTIFICATIONS = 20_000

/** What a push gateway is sent by a program that does nothing else: how many notifications this machine could deliver. */
export async function pushFloor(benchmark: string, gateway: Driver<GatewayReady>, ca: string): Promise<Measurement> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, ca })
  const before = process.cpuUsage()
  let left = NOTIFICATIONS
  const sendOn = async (): Promise<void> => {
    while (left > 0) {
      left--
      await post(agent, gateway.ready.port, bodyOf(left))
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, sendOn))
  const { user, system } = process.cpuUsage(before)
  agent.destroy()
  const { delaysMs, spanMs, cpuMs } = await gateway.ask<GatewayCommand, GatewayReport>({ notifications: NOTIFICATIONS })
  return measurement({
    ...{ benchmark, variant: `floor: a program that posts ${NOTIFICATIONS} notifications and does nothing else` },
    perSecond: delaysMs.length / (spanMs / 1_000),
    serverCpuMs: (user + system) / 1_000 / NOTIFICATIONS,
    note: `the gateway's own CPU ${(cpuMs / delaysMs.length).toFixed(3)} ms`,
    ...latenciesOf(delaysMs),
  })
}

/** As long as those of the server. */
const bodyOf = (n: number): string =>
  JSON.stringify({
    notification: {
      ...{
        event_id: `$${'e'.repeat(43)}`,
        room_id: '!harbour:localhost',
        type: 'm.room.message',
        sender: '@s:localhost',
      },
      ...{ sender_display_name: 's', room_name: 'Harbour', prio: 'low', counts: { unread: 1 } },
      content: { msgtype: 'm.text', body: `at ${sharedNow().toFixed(3)}`, 'm.mentions': { user_ids: [] } },
      devices: [{ app_id: 'org.app', pushkey: `@m${n}:localhost`, pushkey_ts: 1_700_000_000, tweaks: {}, data: {} }],
    },
  })

function post(agent: Agent, port: number, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const path = '/_matrix/push/v1/notify'
    const sending = request({ agent, host: '127.0.0.1', port, path, method: 'POST', headers }, (answer) => {
      answer.resume().once('end', resolve).once('error', reject)
    })
    sending.once('error', reject).end(body)
  })
}
