import { mapConcurrently, syncPath } from '../../test/support/api.ts'
import { createAuthority } from '../../test/support/certificate.ts'
import { type Community, makeCommunity, newPrefix } from '../community.ts'
import type { GatewayReady, GatewayTask } from '../drivers/push-gateway.ts'
import { type Driver, startDriver } from '../drivers/start.ts'
import { latenciesOf, type Measurement, measurement, now, percentile } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, outboundTo, type Target } from '../target.ts'
import { drive } from './send.ts'

/** What people of today set and send, and what that costs others, each beside the same without it. */
export const BENCHMARK = 'today'
const SENDERS = 64
const ROOMS = 10
const PAIRS = 3
const EVENTS = 100
/** Syncs of each kind in a stretch, and how often each has one. Processor time is counted in hundredths of a second. */
const SYNCS = 500
const SYNC_ROUNDS = 7

export async function measureToday(options: BenchOptions): Promise<Measurement[]> {
  const authority = createAuthority()
  const gateway = await startDriver<GatewayTask, GatewayReady>('./push-gateway.js', authority.issue(['127.0.0.1']))
  const target = await openTarget(options, { env: outboundTo(authority.file) })
  try {
    const isIn = (person: number, room: number) => room === person % ROOMS
    const plan = { people: SENDERS, rooms: ROOMS, isIn }
    const plain = await makeCommunity(target, plan)
    const ruled = await makeCommunity(target, plan)
    const pushed = await makeCommunity(target, plan)
    await setRules(ruled)
    await setRules(pushed)
    await setPushers(pushed, gateway)
    await drive(target.baseUrl, linesOf(plain), 2)
    const rateOf = async (community: Community): Promise<Rate> => {
      let perSecond = 0
      const { serverCpuMs, postgresCpuMs } = await costOf(target, async () => {
        const { requests, seconds } = await drive(target.baseUrl, linesOf(community), options.seconds)
        perSecond = requests / seconds
        return requests
      })
      return { perSecond, serverCpuMs: serverCpuMs ?? Number.NaN, postgresCpuMs: postgresCpuMs ?? Number.NaN }
    }
    const rates = { plain: [] as Rate[], ruled: [] as Rate[], pushed: [] as Rate[] }
    for (let pair = 0; pair < PAIRS; pair++) {
      rates.plain.push(await rateOf(plain))
      rates.ruled.push(await rateOf(ruled))
    }
    // Last: what waits for the gateway is sent on meanwhile.
    rates.pushed.push(await rateOf(pushed))
    const syncs = await measureSyncs(target, plain)
    await Promise.all([plain, ruled, pushed].map(({ api }) => api.close()))
    return [...ratesOf(rates), ...syncs]
  } finally {
    await target.close()
    gateway.end()
    authority.remove()
  }
}

const linesOf = ({ people, roomIds }: Community): string[] =>
  people.map(({ token }, index) => `${token} ${encodeURIComponent(roomIds[index % ROOMS]!)}`)

/** Everybody has a word to be told of, a muted room, a favourite, and somebody to ignore. */
async function setRules({ api, people, roomIds }: Community): Promise<void> {
  await mapConcurrently(people, 8, async ({ token, userId }, index) => {
    const put = (path: string, body: object) => api.call('PUT', path, { token, body })
    await put('/pushrules/global/content/word', { pattern: 'kettles', actions: ['notify'] })
    await put(`/pushrules/global/room/${encodeURIComponent(roomIds[(index + 1) % ROOMS]!)}`, { actions: [] })
    const data = `/user/${encodeURIComponent(userId)}`
    const ignored = { ignored_users: { [people[(index + ROOMS) % SENDERS]!.userId]: {} } }
    await put(`${data}/account_data/m.ignored_user_list`, ignored)
    await put(`${data}/rooms/${encodeURIComponent(roomIds[index % ROOMS]!)}/tags/m.favourite`, { order: 0.5 })
  })
}

/** Everybody has a phone, which is told of every message. */
async function setPushers({ api, people }: Community, gateway: Driver<GatewayReady>): Promise<void> {
  const url = `https://127.0.0.1:${gateway.ready.port}/_matrix/push/v1/notify`
  const names = { app_id: 'org.app', app_display_name: 'App', device_display_name: 'Phone', lang: 'en' }
  await mapConcurrently(people, 8, ({ token, userId }) =>
    api.call('POST', '/pushers/set', { token, body: { ...names, kind: 'http', pushkey: userId, data: { url } } }),
  )
}

/** Of one stretch; processor time is per message, and hardly differs on a busy machine. */
interface Rate {
  readonly perSecond: number
  readonly serverCpuMs: number
  readonly postgresCpuMs: number
}

function ratesOf({
  plain,
  ruled,
  pushed,
}: Readonly<Record<'plain' | 'ruled' | 'pushed', readonly Rate[]>>): Measurement[] {
  const median = (rates: readonly Rate[], of: (rate: Rate) => number) => percentile(rates.map(of), 0.5)
  const line = (variant: string, rates: readonly Rate[], note?: string) =>
    measurement({
      ...{ benchmark: BENCHMARK, variant: `${SENDERS} senders, ${variant}`, note },
      perSecond: median(rates, ({ perSecond }) => perSecond),
      serverCpuMs: median(rates, ({ serverCpuMs }) => serverCpuMs),
      postgresCpuMs: median(rates, ({ postgresCpuMs }) => postgresCpuMs),
    })
  const share = (of: (rate: Rate) => number) => {
    const ratio = percentile(
      ruled.map((rate, pair) => of(rate) / of(plain[pair]!)),
      0.5,
    )
    return `${((ratio - 1) * 100).toFixed(1)}%`
  }
  const cpu = share(({ serverCpuMs, postgresCpuMs }) => serverCpuMs + postgresCpuMs)
  const note = `${share(({ perSecond }) => perSecond)} against nothing set, processor time ${cpu} (medians of ${PAIRS} pairs)`
  return [
    line('nothing set', plain),
    line('with rules, ignored users and tags', ruled, note),
    line('and a pusher each, told of every message', pushed),
  ]
}

/** Kinds of rooms: with short messages, with longer ones, and with aggregations, whose syncs are as long as those of the longer ones. */
const KINDS = ['bare', 'long', 'rich'] as const

/** First syncs of a room in which every fifth message has an edit, a reaction, a reply in a thread and a reference, beside rooms without. */
async function measureSyncs(target: Target, { api, people }: Community): Promise<Measurement[]> {
  const [writer] = people
  const { token } = writer!
  const word = newPrefix()
  let sent = 0
  const send = async (room: string, content: object, type = 'm.room.message'): Promise<string> => {
    const path = `/rooms/${encodeURIComponent(room)}/send/${type}/${word}${++sent}`
    return (await api.call('PUT', path, { token, body: content })).event_id
  }
  const text = { msgtype: 'm.text', body: 'The fire is lit and the kettle is on; come over when you are done.' }
  const newRoom = async (name: string) => (await api.call('POST', '/createRoom', { token, body: { name } })).room_id
  const rooms = { bare: await newRoom('bare'), long: await newRoom('long'), rich: await newRoom('rich') }
  for (let count = 0; count < EVENTS; count++) await send(rooms.bare, text)
  for (let count = 0; count < EVENTS; count += 5) {
    const event_id = await send(rooms.rich, text)
    const to = (rel_type: string, more = {}) => ({ ...text, 'm.relates_to': { rel_type, event_id, ...more } })
    await send(rooms.rich, { ...to('m.replace'), 'm.new_content': text })
    await send(rooms.rich, to('m.annotation', { key: '👍' }), 'm.reaction')
    await send(rooms.rich, to('m.thread'))
    await send(rooms.rich, to('m.reference'), 'org.example.note')
  }
  const filter = (room: string) => ({
    room: { rooms: [room], timeline: { limit: EVENTS } },
    presence: { types: [] },
    account_data: { types: [] },
  })
  const sync = (room: string) => api.call('GET', syncPath({ filter: filter(room) }), { token })
  const lengthOf = async (room: string) => JSON.stringify(await sync(room)).length
  const more = Math.round(((await lengthOf(rooms.rich)) - (await lengthOf(rooms.bare))) / EVENTS)
  for (let count = 0; count < EVENTS; count++)
    await send(rooms.long, { ...text, body: text.body.padEnd(text.body.length + more, '.') })
  const values = { bare: [] as number[], long: [] as number[], rich: [] as number[] }
  const cpu = { bare: [] as number[], long: [] as number[], rich: [] as number[] }
  for (let round = 0; round < SYNC_ROUNDS; round++) {
    for (const kind of round % 2 ? KINDS : KINDS.toReversed()) {
      const { serverCpuMs = Number.NaN, postgresCpuMs = Number.NaN } = await costOf(target, async () => {
        for (let count = 0; count < SYNCS; count++) {
          const begun = now()
          await sync(rooms[kind])
          values[kind].push(now() - begun)
        }
        return SYNCS
      })
      cpu[kind].push(serverCpuMs + postgresCpuMs)
    }
  }
  const cpuAgainst = (kind: 'bare' | 'long') => {
    const ratios = cpu[kind].map((cost, round) => cpu.rich[round]! / cost)
    return `${((percentile(ratios, 0.5) - 1) * 100).toFixed(1)}%`
  }
  const line = (variant: string, kind: (typeof KINDS)[number], note?: string) => {
    const all = { benchmark: BENCHMARK, variant: `sync of a room, ${variant}`, note }
    return measurement({ ...all, serverCpuMs: percentile(cpu[kind], 0.5), ...latenciesOf(values[kind]) })
  }
  const note = `processor time ${cpuAgainst('bare')} against ${EVENTS} messages, ${cpuAgainst('long')} against as many bytes (medians of ${SYNC_ROUNDS} rounds)`
  return [
    line(`${EVENTS} messages`, 'bare'),
    line(`${EVENTS} longer messages`, 'long'),
    line(`${EVENTS} messages with aggregations`, 'rich', note),
  ]
}
