import { Pool } from 'undici'
import {
  type Account,
  type Api,
  createRoom,
  join,
  login,
  mapConcurrently,
  openApi,
  sendText,
} from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'initial-sync'
const MEMBERS = 5
/** The others only listen, so that leaving out members who said nothing makes a difference. */
const SPEAKERS = 2
export const EVENTS_PER_ROOM = 20
const HOT_ROUNDS = 15
const AT_ONCE = 50

const FILTERS = {
  'lazy members': { room: { timeline: { limit: EVENTS_PER_ROOM }, state: { lazy_load_members: true } } },
  'all members': { room: { timeline: { limit: EVENTS_PER_ROOM } } },
} as const

/** Somebody who is in many rooms signs in on a new device. */
export async function measureInitialSync(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl)
  try {
    const people = await registerPeople(api, target, MEMBERS)
    await fillRooms(api, people, options.rooms)
    const measured: Measurement[] = []
    for (const [name, filter] of Object.entries(FILTERS)) {
      measured.push(...(await measureFilter(target, api, people, `${options.rooms} rooms, ${name}`, filter)))
    }
    measured.push(await measureFew(target, api, people, `${options.rooms} rooms, lazy members`))
    measured.push(await measureCrowd(target, api, people, `${options.rooms} rooms, lazy members`))
    return measured
  } finally {
    await api.close()
    await target.close()
  }
}

async function fillRooms(api: Api, people: readonly Account[], rooms: number): Promise<void> {
  const [maker, ...others] = people
  const word = newPrefix()
  const numbers = Array.from({ length: rooms }, (_, index) => index)
  await mapConcurrently(numbers, 8, async (number) => {
    const roomId = await createRoom(api, maker!.token, { preset: 'public_chat', name: `Room ${number}` })
    for (const person of others) await join(api, person.token, roomId)
    for (let index = 0; index < EVENTS_PER_ROOM; index += 1) {
      const { token } = people[index % SPEAKERS]!
      await sendText(api, token, roomId, `${word}-${number}-${index}`, `Message ${index} of room ${number}`)
    }
  })
}

async function measureFilter(target: Target, api: Api, people: readonly Account[], variant: string, filter: object) {
  const cold = target.own === undefined ? [] : [await measureCold(target, api, people[1]!, variant, filter)]
  const times: number[] = []
  let bytes = 0
  for (let round = 0; round < HOT_ROUNDS; round += 1) {
    const sync = await timedSync(target.baseUrl, await login(api, people[0]!.userId), filter)
    times.push(sync.milliseconds)
    bytes = sync.bytes
  }
  const note = `${(bytes / 1e6).toFixed(2)} MB`
  return [...cold, measurement({ benchmark: BENCHMARK, variant: `${variant}, hot`, ...latenciesOf(times), note })]
}

/** The first request after a restart: nothing is in the memory of the server or of Postgres. */
async function measureCold(target: Target, api: Api, person: Account, variant: string, filter: object) {
  const device = await login(api, person.userId)
  await target.own!.kill('SIGTERM')
  await target.own!.start()
  const { milliseconds } = await timedSync(target.baseUrl, device, filter)
  return measurement({ benchmark: BENCHMARK, variant: `${variant}, cold`, p50Ms: milliseconds })
}

/** All members at the same time, until the last of them has all. */
async function measureFew(target: Target, api: Api, people: readonly Account[], variant: string) {
  const times: number[] = []
  for (let round = 0; round < HOT_ROUNDS; round += 1) {
    const devices: Account[] = []
    for (const { userId } of people) devices.push(await login(api, userId))
    const begun = performance.now()
    await Promise.all(devices.map((device) => timedSync(target.baseUrl, device, FILTERS['lazy members'])))
    times.push(performance.now() - begun)
  }
  const { length } = people
  return measurement({ benchmark: BENCHMARK, variant: `${variant}, hot, ${length} at once`, ...latenciesOf(times) })
}

async function measureCrowd(target: Target, api: Api, people: readonly Account[], variant: string) {
  const devices: Account[] = []
  for (let index = 0; index < AT_ONCE; index += 1) devices.push(await login(api, people[index % MEMBERS]!.userId))
  const begun = performance.now()
  const syncs = await Promise.all(devices.map((device) => timedSync(target.baseUrl, device, FILTERS['lazy members'])))
  const seconds = (performance.now() - begun) / 1_000
  return measurement({
    benchmark: BENCHMARK,
    variant: `${variant}, ${AT_ONCE} at once`,
    perSecond: AT_ONCE / seconds,
    ...latenciesOf(syncs.map((sync) => sync.milliseconds)),
    serverPeakMb: target.usage().server?.peakMb,
    postgresMb: target.usage().postgres?.proportionalMb,
  })
}

/** From the request to the last byte, without reading the JSON. */
export async function timedSync(
  baseUrl: string,
  device: Pick<Account, 'token'>,
  filter: object,
  more: Readonly<Record<string, string>> = {},
) {
  const pool = new Pool(baseUrl, { connections: 1, headersTimeout: 600_000, bodyTimeout: 600_000 })
  try {
    const query = new URLSearchParams({ timeout: '0', filter: JSON.stringify(filter), ...more })
    const begun = performance.now()
    const { statusCode, body } = await pool.request({
      method: 'GET',
      path: `/_matrix/client/v3/sync?${query}`,
      headers: { authorization: `Bearer ${device.token}` },
    })
    let bytes = 0
    for await (const chunk of body) bytes += chunk.length
    if (statusCode !== 200) throw new Error(`sync answered ${statusCode}`)
    return { milliseconds: performance.now() - begun, bytes }
  } finally {
    await pool.close()
  }
}
