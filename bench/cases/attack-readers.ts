import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, createRoom, openApi } from '../../test/support/api.ts'
import { noticedNote, startBystander } from '../bystander.ts'
import { registerPeople } from '../community.ts'
import type { HeldPoll, HoldTask } from '../drivers/hold.ts'
import { startDriver } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

/** One user asks on many connections for large answers, and reads none of them. */
export const BENCHMARK = 'attack-readers'
const CONNECTIONS = 200
const EVENTS = 500
const EVENT_BYTES = 60_000
const SAMPLED_EVERY_MS = 100
const SETTLED_AFTER_MS = 60_000

export async function measureAttackReaders(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const target = await openTarget(options)
  const api = openApi(target.baseUrl, { connections: 8 })
  try {
    const [attacker] = (await registerPeople(api, target, 1)) as [Account]
    const room = await createRoom(api, attacker.token)
    const root = await fill(api, attacker, room)
    const bystander = await startBystander(target)
    const at = `/rooms/${encodeURIComponent(room)}`
    const id = encodeURIComponent(root)
    const paths: readonly [name: string, path: string, body?: object][] = [
      ['messages', `/_matrix/client/v3${at}/messages?dir=b&limit=1000`],
      ['context', `/_matrix/client/v3${at}/context/${id}?limit=1000`],
      ['relations', `/_matrix/client/v1${at}/relations/${id}?limit=1000`],
      ['notifications', '/_matrix/client/v3/notifications?limit=500'],
      ['search with context', '/_matrix/client/v3/search', SEARCH],
    ]
    const rows: Measurement[] = []
    for (const [name, path, body] of paths) {
      const poll = { token: attacker.token, path, ...(body && { body: JSON.stringify(body) }) }
      rows.push(await attack(target, bystander, options, name, poll))
    }
    await bystander.close()
    return rows
  } finally {
    await api.close()
    await target.close()
  }
}

const SEARCH = {
  search_categories: {
    room_events: {
      search_term: 'needle',
      order_by: 'recent',
      filter: { limit: 50 },
      event_context: { before_limit: 20, after_limit: 20 },
    },
  },
}

/** A thread of long replies. */
async function fill(api: Api, { token }: Account, room: string): Promise<string> {
  const send = async (id: string, content: object): Promise<string> => {
    const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${id}`
    return (await api.call('PUT', path, { token, body: { msgtype: 'm.text', body: 'needle', ...content } })).event_id
  }
  const root = await send('root', {})
  const padding = 'x'.repeat(EVENT_BYTES)
  const relation = { rel_type: 'm.thread', event_id: root }
  for (let n = 0; n < EVENTS; n++) await send(`long${n}`, { padding, 'm.relates_to': relation })
  return root
}

async function attack(
  target: Target,
  bystander: Awaited<ReturnType<typeof startBystander>>,
  { seconds }: BenchOptions,
  name: string,
  poll: HeldPoll,
): Promise<Measurement> {
  const { hostname, port } = new URL(target.baseUrl)
  const resident = () => target.usage().server?.residentMb ?? Number.NaN
  const before = resident()
  let peak = before
  const sampling = setInterval(() => {
    peak = Math.max(peak, resident())
  }, SAMPLED_EVERY_MS)
  const noticed = await bystander.during(async () => {
    const task = { host: hostname, port: Number(port), polls: [poll], count: CONNECTIONS, isReading: false }
    const driver = await startDriver<HoldTask, string>('./hold.js', task)
    await pause(seconds * 1_000)
    driver.end()
  })
  clearInterval(sampling)
  await pause(SETTLED_AFTER_MS)
  const memory = `resident ${before.toFixed(0)} MB before, ${peak.toFixed(0)} peak, ${resident().toFixed(0)} a minute after`
  return measurement({
    ...{ benchmark: BENCHMARK, variant: `${CONNECTIONS} connections ask for ${name} and do not read` },
    ...noticed.sends,
    serverPeakMb: peak,
    note: `${memory}; ${noticedNote(noticed)}`,
  })
}
