import { type Account, type Api, createRoom, login, openApi, sendText } from '../../test/support/api.ts'
import { cloneRoom, ROOM_NUMBER } from '../cloned-rooms.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { timedSliding } from '../sliding.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'sliding-start'
const SIZES = [300, 5_000]
const WINDOW = 20
const COLD_ROUNDS = 5
const WARM_ROUNDS = 15

/** The first answer to somebody who is in many rooms and opens the room list on a new device. */
export async function measureSlidingStart(options: BenchOptions): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const rooms of SIZES) {
    const target = await openTarget(options)
    const api = openApi(target.baseUrl)
    try {
      measured.push(...(await measureAccount(target, api, rooms)))
    } finally {
      await api.close()
      await target.close()
    }
  }
  return measured
}

async function measureAccount(target: Target, api: Api, rooms: number): Promise<Measurement[]> {
  const [person] = await registerPeople(api, target, 1)
  await fillRooms(target, api, person!, rooms)
  const cold: number[] = []
  for (let round = 0; target.own !== undefined && round < COLD_ROUNDS; round += 1) {
    cold.push(await coldStart(target, await login(api, person!.userId)))
  }
  const warm: number[] = []
  let note = ''
  for (let round = 0; round < WARM_ROUNDS; round += 1) {
    const answer = await startOf(target, await login(api, person!.userId))
    warm.push(answer.milliseconds)
    note = `${(answer.bytes / 1e3).toFixed(0)} kB`
  }
  return [
    ...(cold.length === 0 ? [] : [figure(`${rooms} rooms, cold`, cold, `each of ${COLD_ROUNDS} after a start`)]),
    figure(`${rooms} rooms, warm`, warm, note),
  ]
}

const figure = (variant: string, times: readonly number[], note: string): Measurement =>
  measurement({ benchmark: BENCHMARK, variant, ...latenciesOf(times), note })

/** One room through the public interface, and the others as copies of it, which the server sees after its next start. */
async function fillRooms(target: Target, api: Api, { token }: Account, rooms: number): Promise<void> {
  const roomId = await createRoom(api, token, {
    preset: 'private_chat',
    room_version: '11',
    name: `Room ${ROOM_NUMBER}`,
  })
  await sendText(api, token, roomId, newPrefix(), `Message of room ${ROOM_NUMBER}`)
  await cloneRoom(target, roomId, rooms - 1)
}

/** The first request after a restart: nothing is in the memory of the server or of Postgres. */
async function coldStart(target: Target, device: Account): Promise<number> {
  await target.own!.kill('SIGTERM')
  await target.own!.start()
  return (await startOf(target, device)).milliseconds
}

async function startOf({ baseUrl }: Target, device: Account) {
  const answer = await timedSliding(baseUrl, device)
  if (answer.rooms !== WINDOW) throw new Error(`a window of ${WINDOW} rooms held ${answer.rooms}`)
  return answer
}
