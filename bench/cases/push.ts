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
/** Messages to all, in a second, for as long as it takes until the first burst is over, and then for so many seconds. */
const FLOOD_PER_SECOND = 200
const FLOOD_BEGINS_SECONDS = 5
const FLOOD_SECONDS = 10
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
  const flooded = await flood(scene)
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
    flooded,
  ]
}

/**
 * More messages than any phone is told of one by one. The time of a message is from its sending to the first notification of it or of a
 * later one of the room, for each pusher.
 */
async function flood(scene: Scene): Promise<Measurement> {
  const { target, gateway, members } = scene
  const seconds = FLOOD_BEGINS_SECONDS + FLOOD_SECONDS
  const count = FLOOD_PER_SECOND * seconds
  let report: GatewayReport | undefined
  const { serverCpuMs, postgresCpuMs } = await costOf(target, async () => {
    await sendAll(scene, count, FLOOD_PER_SECOND)
    const last = await sendOne(scene, 0, newPrefix(), false)
    report = await gateway.ask<GatewayCommand, GatewayReport>({ lastAt: { sent: bodyOf(last), pushkeys: PUSHERS } })
    return count
  })
  const sentAt = await newestSent(scene, count + 1)
  const begin = sentAt[0]! + FLOOD_BEGINS_SECONDS * 1_000
  const covered = members.flatMap(({ userId }) => timesToCover(sentAt, report!.heard[userId] ?? []))
  const measured = covered.filter(([sent]) => sent >= begin).map(([, tookMs]) => tookMs)
  const heard = Object.values(report!.heard).flat()
  const perSecond = heard.filter(([, at]) => at >= begin && at < begin + FLOOD_SECONDS * 1_000).length / FLOOD_SECONDS
  const note = `${heard.length} notifications of ${count} messages; times to the one that covers a message, after the first ${FLOOD_BEGINS_SECONDS} s; processor time is per message`
  const variant = `${FLOOD_PER_SECOND} messages/s to ${PUSHERS} pushers, all notified at their pace`
  const times = latenciesOf(measured)
  return measurement({ ...{ benchmark: BENCHMARK, variant, perSecond, serverCpuMs, postgresCpuMs, note }, ...times })
}

/** When the newest messages of the room were sent, in the order of its timeline. */
async function newestSent({ api, senders, room }: Scene, count: number): Promise<number[]> {
  const found: number[] = []
  for (let from = ''; found.length < count; ) {
    const path = `/rooms/${encodeURIComponent(room)}/messages?dir=b&limit=500${from}`
    const { chunk, end } = await api.call('GET', path, { token: senders[0]!.token })
    for (const { content } of chunk) if (content.body?.startsWith('at ')) found.push(Number(content.body.slice(3)))
    if (end === undefined) throw new Error(`the room has ${found.length} messages instead of ${count}`)
    from = `&from=${encodeURIComponent(end)}`
  }
  return found.slice(0, count).reverse()
}

/** For each message, the milliseconds until one pusher was told of it or of a later one; Infinity if it was not. */
function timesToCover(sentAt: readonly number[], heard: readonly (readonly [sent: number, at: number])[]) {
  const places = new Map(sentAt.map((sent, place) => [sent, place]))
  const told = heard.map(([sent, at]) => [places.get(sent) ?? -1, at] as const).sort(([, a], [, b]) => a - b)
  let next = 0
  return sentAt.map((sent, place) => {
    while (next < told.length && told[next]![0] < place) next += 1
    return [sent, (told[next]?.[1] ?? Number.POSITIVE_INFINITY) - sent] as const
  })
}

interface Stretch extends GatewayReport {
  readonly messages: number
  readonly serverCpuMs: number | undefined
  readonly postgresCpuMs: number | undefined
}

/** Sends when it is time, whether earlier ones were answered or not; each says when it was sent, and notifies so many. */
async function send(
  scene: Scene,
  seconds: number,
  { perSecond, notifiedEach }: { readonly perSecond: number; readonly notifiedEach: number },
): Promise<Stretch> {
  const messages = Math.round(perSecond * seconds)
  let report: GatewayReport | undefined
  const { serverCpuMs, postgresCpuMs } = await costOf(scene.target, async () => {
    await sendAll(scene, messages, perSecond, notifiedEach === 1)
    const notifications = messages * notifiedEach
    report = await scene.gateway.ask<GatewayCommand, GatewayReport>({ notifications })
    const count = report.delaysMs.length
    if (count !== notifications)
      throw new Error(`the gateway was sent ${count} notifications instead of ${notifications}`)
    return notifications
  })
  return { ...report!, messages, serverCpuMs, postgresCpuMs }
}

async function sendAll(scene: Scene, messages: number, perSecond: number, mentionOne = false): Promise<void> {
  const word = newPrefix()
  const start = now()
  const sent: Promise<number>[] = []
  while (sent.length < messages) {
    const due = Math.min(messages, Math.floor(((now() - start) / 1000) * perSecond) + 1)
    for (let n = sent.length; n < due; n++) sent.push(sendOne(scene, n, `${word}${n}`, mentionOne))
    await pause(TICK_MS)
  }
  await Promise.all(sent)
}

async function sendOne(scene: Scene, n: number, txnId: string, mentionsOne: boolean): Promise<number> {
  const { api, senders, members, room } = scene
  const { token } = senders[n % SENDERS]!
  const user_ids = mentionsOne ? [members[n % PUSHERS]!.userId] : []
  const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${txnId}`
  const text = bodyOf(sharedNow())
  await api.call('PUT', path, { token, body: { msgtype: 'm.text', body: text, 'm.mentions': { user_ids } } })
  return Number(text.slice(3))
}

const bodyOf = (at: number): string => `at ${at.toFixed(3)}`

function line(variant: string, made: Stretch): Measurement {
  const { delaysMs, spanMs, cpuMs, messages, serverCpuMs, postgresCpuMs } = made
  const note = `${delaysMs.length} notifications of ${messages} messages; the gateway's own CPU ${(cpuMs / delaysMs.length).toFixed(3)} ms`
  const perSecond = delaysMs.length / (spanMs / 1000)
  return measurement({
    ...{ benchmark: BENCHMARK, variant, perSecond, serverCpuMs, postgresCpuMs, note },
    ...latenciesOf(delaysMs),
  })
}
