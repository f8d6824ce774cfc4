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
import { cloneRoom, ROOM_NUMBER } from '../cloned-rooms.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { timedSliding } from '../sliding.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'sliding-crowd'
const PEOPLE = 200
const ROOMS = 300
const WINDOW = 20
/** What the project promises. */
const GOAL_SECONDS = 8

/** After a restart, all people of a large server open their room lists at once. Each is in all rooms. */
export async function measureSlidingCrowd(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl, { connections: 32 })
  try {
    const people = await registerPeople(api, target, PEOPLE)
    await fillRooms(target, api, people)
    const devices = await mapConcurrently(people, 8, ({ userId }) => login(api, userId))
    await target.own?.kill('SIGTERM')
    await target.own?.start()
    const before = target.usage()
    const begun = performance.now()
    const answers = await Promise.all(devices.map((device) => timedSliding(target.baseUrl, device)))
    const seconds = (performance.now() - begun) / 1_000
    const after = target.usage()
    const wrong = answers.find(({ rooms }) => rooms !== WINDOW)
    if (wrong) throw new Error(`a window of ${WINDOW} rooms held ${wrong.rooms}`)
    const cpuMs = (which: 'server' | 'postgres') =>
      (((after[which]?.cpuSeconds ?? Number.NaN) - (before[which]?.cpuSeconds ?? Number.NaN)) * 1_000) / PEOPLE
    return [
      measurement({
        benchmark: BENCHMARK,
        variant: `${PEOPLE} people in ${ROOMS} rooms, at once, cold`,
        perSecond: PEOPLE / seconds,
        ...latenciesOf(answers.map(({ milliseconds }) => milliseconds)),
        serverCpuMs: cpuMs('server'),
        postgresCpuMs: cpuMs('postgres'),
        serverPeakMb: after.server?.peakMb,
        postgresMb: after.postgres?.proportionalMb,
        note: `done within ${seconds.toFixed(2)} s; the goal is ${GOAL_SECONDS} s`,
      }),
    ]
  } finally {
    await api.close()
    await target.close()
  }
}

/** One room through the public interface, and the others as copies of it. */
async function fillRooms(target: Target, api: Api, [maker, ...others]: readonly Account[]): Promise<void> {
  const roomId = await createRoom(api, maker!.token, {
    preset: 'public_chat',
    room_version: '11',
    name: `Room ${ROOM_NUMBER}`,
  })
  await mapConcurrently(others, 32, ({ token }) => join(api, token, roomId))
  await sendText(api, maker!.token, roomId, newPrefix(), `Good morning, room ${ROOM_NUMBER}`)
  await cloneRoom(target, roomId, ROOMS - 1)
}
