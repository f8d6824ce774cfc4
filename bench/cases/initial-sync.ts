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
import { latenciesOf, type Measurement, measurement, percentile } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'initial-sync'
const MEMBERS = 5
/** The others only listen, so that leaving out members who said nothing makes a difference. */
const SPEAKERS = 2
export const EVENTS_PER_ROOM = 20
const DEVICES = 8
/** In the first rounds after a start the engine still compiles: they are shown apart. */
const FIRST_ROUNDS = 15
export const FEW = MEMBERS
const CROWD = 50

const FILTERS = {
  'lazy members': { room: { timeline: { limit: EVENTS_PER_ROOM }, state: { lazy_load_members: true } } },
  'all members': { room: { timeline: { limit: EVENTS_PER_ROOM } } },
} as const

interface Scene {
  readonly target: Target
  readonly api: Api
  readonly people: readonly Account[]
  /** Sets of devices, of which each has one of each person. */
  readonly devices: readonly (readonly Account[])[]
  readonly seconds: number
}

/** Somebody who is in many rooms signs in on a new device. */
export async function measureInitialSync(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl)
  try {
    const people = await registerPeople(api, target, MEMBERS)
    await fillRooms(api, people, options.rooms)
    const devices: Account[][] = []
    for (let number = 0; number < DEVICES; number += 1) {
      devices.push(await Promise.all(people.map(({ userId }) => login(api, userId))))
    }
    const scene: Scene = { target, api, people, devices, seconds: options.seconds }
    const measured: Measurement[] = []
    for (const [name, filter] of Object.entries(FILTERS)) {
      measured.push(...(await measureFilter(scene, `${options.rooms} rooms, ${name}`, filter)))
    }
    measured.push(await measureFew(scene, `${options.rooms} rooms, lazy members`))
    measured.push(await measureCrowd(scene, `${options.rooms} rooms, lazy members`))
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

async function measureFilter(
  { target, api, people, devices, seconds }: Scene,
  variant: string,
  filter: object,
): Promise<Measurement[]> {
  const cold = target.own === undefined ? [] : [await measureCold(target, api, people[1]!, variant, filter)]
  let bytes = 0
  const { note, ...latencies } = await hotRounds(seconds, async (round) => {
    const sync = await timedSync(target.baseUrl, devices[round % DEVICES]![0]!, filter)
    bytes = sync.bytes
    return sync.milliseconds
  })
  const size = `${(bytes / 1e6).toFixed(2)} MB`
  return [
    ...cold,
    measurement({ benchmark: BENCHMARK, variant: `${variant}, hot`, ...latencies, note: `${size}; ${note}` }),
  ]
}

/** How long rounds take, one after another, for so many seconds. */
export async function hotRounds(seconds: number, round: (number: number) => Promise<number>) {
  const first: number[] = []
  for (let number = 0; number < FIRST_ROUNDS; number += 1) first.push(await round(number))
  const times: number[] = []
  const ends = performance.now() + seconds * 1_000
  while (performance.now() < ends) times.push(await round(times.length))
  const note = `the first ${FIRST_ROUNDS} rounds: ${percentile(first, 0.5).toFixed(1)} ms`
  return { ...latenciesOf(times), note }
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
async function measureFew({ target, devices, seconds }: Scene, variant: string) {
  const figures = await hotRounds(seconds, (round) =>
    timedTogether(
      devices[round % DEVICES]!.map((device) => timedSync(target.baseUrl, device, FILTERS['lazy members'])),
    ),
  )
  return measurement({ benchmark: BENCHMARK, variant: `${variant}, hot, ${FEW} at once`, ...figures })
}

/** Milliseconds until the last of these has ended. */
export async function timedTogether(running: readonly Promise<unknown>[]): Promise<number> {
  const begun = performance.now()
  await Promise.all(running)
  return performance.now() - begun
}

async function measureCrowd({ target, api, people }: Scene, variant: string) {
  const crowd: Account[] = []
  for (let index = 0; index < CROWD; index += 1) crowd.push(await login(api, people[index % MEMBERS]!.userId))
  const begun = performance.now()
  const syncs = await Promise.all(crowd.map((device) => timedSync(target.baseUrl, device, FILTERS['lazy members'])))
  const seconds = (performance.now() - begun) / 1_000
  return measurement({
    benchmark: BENCHMARK,
    variant: `${variant}, ${CROWD} at once`,
    perSecond: CROWD / seconds,
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
