import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, createRoom, join, mapConcurrently, openApi, register } from '../../test/support/api.ts'
import { createAuthority } from '../../test/support/certificate.ts'
import { newPrefix } from '../community.ts'
import type { GatewayCommand, GatewayReady, GatewayReport, GatewayTask } from '../drivers/push-gateway.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import { pushFloor } from '../floor/push.ts'
import { latenciesOf, type Measurement, measurement, now, sharedNow } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, outboundTo, type Target } from '../target.ts'

export const BENCHMARK = 'push'
const PUSHERS = 1_000
const SENDERS = 16
/** Messages of which each mentions one member, in a second. */
const MENTIONS_PER_SECOND = 200
/** Messages that notify all members, in a second. */
const ALL_PER_SECOND = 2
/** Messages to all at once: how many notifications a second leave when as many wait as may. */
const BURST = 10
const TICK_MS = 2

interface Scene {
  readonly target: Target
  readonly api: Api
  readonly gateway: Driver<GatewayReady>
  readonly senders: readonly Account[]
  readonly members: readonly Account[]
  readonly room: string
}

/** How long a notification takes from the request that sends its message to a push gateway over HTTPS. */
export async function measurePush(options: BenchOptions): Promise<Measurement[]> {
  const authority = createAuthority()
  const gateway = await startDriver<GatewayTask, GatewayReady>('./push-gateway.js', authority.issue(['127.0.0.1']))
  const target = await openTarget(options, { env: outboundTo(authority.file) })
  const api = openApi(target.baseUrl, { connections: 64 })
  try {
    const scene = await makeScene({ target, api, gateway })
    const floor = options.withFloor ? [await pushFloor(BENCHMARK, gateway, readFileSync(authority.file, 'utf8'))] : []
    return [...(await measureAll(scene, options.seconds)), ...floor]
  } finally {
    await api.close()
    await target.close()
    gateway.end()
    authority.remove()
  }
}

async function makeScene(parts: Pick<Scene, 'target' | 'api' | 'gateway'>): Promise<Scene> {
  const { api, gateway } = parts
  const word = newPrefix()
  const people = (kind: string, count: number) =>
    mapConcurrently([...Array(count).keys()], 16, (n) => register(api, `${word}${kind}${n}`))
  const senders = await people('s', SENDERS)
  const members = await people('m', PUSHERS)
  const room = await createRoom(api, senders[0]!.token, { preset: 'public_chat', name: 'Harbour' })
  await mapConcurrently([...senders.slice(1), ...members], 16, ({ token }) => join(api, token, room))
  const url = `https://127.0.0.1:${gateway.ready.port}/_matrix/push/v1/notify`
  await mapConcurrently(members, 16, async ({ token, userId }) => {
    const names = { app_id: 'org.app', app_display_name: 'App', device_display_name: 'Phone', lang: 'en' }
    await api.call('POST', '/pushers/set', { token, body: { ...names, kind: 'http', pushkey: userId, data: { url } } })
  })
  return { ...parts, senders, members, room }
}

async function measureAll(scene: Scene, seconds: number): Promise<Measurement[]> {
  await send(scene, 3, { perSecond: ALL_PER_SECOND, notifiedEach: PUSHERS })
  const all = await send(scene, seconds, { perSecond: ALL_PER_SECOND, notifiedEach: PUSHERS })
  const burst = await send(scene, 1, { perSecond: BURST, notifiedEach: PUSHERS })
  const overload = await send(scene, 1, { perSecond: MENTIONS_PER_SECOND, notifiedEach: PUSHERS })
  await mapConcurrently(scene.members, 16, ({ token }) => {
    const path = `/pushrules/global/room/${encodeURIComponent(scene.room)}`
    return scene.api.call('PUT', path, { token, body: { actions: [] } })
  })
  await send(scene, 2, { perSecond: MENTIONS_PER_SECOND, notifiedEach: 1 })
  const mentions = await send(scene, seconds, { perSecond: MENTIONS_PER_SECOND, notifiedEach: 1 })
  return [
    line(`${MENTIONS_PER_SECOND} messages/s to ${PUSHERS} pushers, one of them mentioned`, mentions),
    line(`${ALL_PER_SECOND} messages/s to ${PUSHERS} pushers, all notified`, all),
    line(`${BURST} messages within a second to ${PUSHERS} pushers, all notified`, burst),
    line(`${MENTIONS_PER_SECOND} messages within a second to ${PUSHERS} pushers, all notified`, overload),
  ]
}

interface Stretch extends GatewayReport {
  readonly messages: number
  readonly serverCpuMs: number | undefined
  readonly postgresCpuMs: number | undefined
}

/** Sends when it is time, whether earlier ones were answered or not; each says when it was sent. */
async function send(
  scene: Scene,
  seconds: number,
  { perSecond, notifiedEach }: { readonly perSecond: number; readonly notifiedEach: number },
): Promise<Stretch> {
  const messages = Math.round(perSecond * seconds)
  const word = newPrefix()
  let report: GatewayReport | undefined
  const { serverCpuMs, postgresCpuMs } = await costOf(scene.target, async () => {
    const start = now()
    const sent: Promise<void>[] = []
    while (sent.length < messages) {
      const due = Math.min(messages, Math.floor(((now() - start) / 1000) * perSecond) + 1)
      for (let n = sent.length; n < due; n++) sent.push(sendOne(scene, n, `${word}${n}`, notifiedEach === 1))
      await pause(TICK_MS)
    }
    await Promise.all(sent)
    const notifications = messages * notifiedEach
    report = await scene.gateway.ask<GatewayCommand, GatewayReport>({ notifications })
    const count = report.delaysMs.length
    if (count !== notifications)
      throw new Error(`the gateway was sent ${count} notifications instead of ${notifications}`)
    return notifications
  })
  return { ...report!, messages, serverCpuMs, postgresCpuMs }
}

async function sendOne(scene: Scene, n: number, txnId: string, mentionsOne: boolean): Promise<void> {
  const { api, senders, members, room } = scene
  const { token } = senders[n % SENDERS]!
  const user_ids = mentionsOne ? [members[n % PUSHERS]!.userId] : []
  const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${txnId}`
  const body = { msgtype: 'm.text', body: `at ${sharedNow().toFixed(3)}`, 'm.mentions': { user_ids } }
  await api.call('PUT', path, { token, body })
}

function line(variant: string, made: Stretch): Measurement {
  const { delaysMs, spanMs, cpuMs, messages, serverCpuMs, postgresCpuMs } = made
  const note = `${delaysMs.length} notifications of ${messages} messages; the gateway's own CPU ${(cpuMs / delaysMs.length).toFixed(3)} ms`
  const perSecond = delaysMs.length / (spanMs / 1000)
  return measurement({
    ...{ benchmark: BENCHMARK, variant, perSecond, serverCpuMs, postgresCpuMs, note },
    ...latenciesOf(delaysMs),
  })
}
