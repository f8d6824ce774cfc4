import {
  type Account,
  type Api,
  createRoom,
  login,
  mapConcurrently,
  openApi,
  sendText,
} from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { timedSliding } from '../sliding.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'sliding-start'
const SIZES = [300, 5_000]
const WINDOW = 20
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
  await fillRooms(api, person!, rooms)
  const cold = target.own === undefined ? [] : [await measureCold(target, api, person!, `${rooms} rooms`)]
  const times: number[] = []
  let note = ''
  for (let round = 0; round < WARM_ROUNDS; round += 1) {
    const answer = await startOf(target, await login(api, person!.userId))
    times.push(answer.milliseconds)
    note = `${(answer.bytes / 1e3).toFixed(0)} kB`
  }
  return [...cold, measurement({ benchmark: BENCHMARK, variant: `${rooms} rooms, warm`, ...latenciesOf(times), note })]
}

async function fillRooms(api: Api, { token }: Account, rooms: number): Promise<void> {
  const word = newPrefix()
  const numbers = Array.from({ length: rooms }, (_, index) => index)
  await mapConcurrently(numbers, 16, async (number) => {
    const roomId = await createRoom(api, token, { preset: 'private_chat', name: `Room ${number}` })
    await sendText(api, token, roomId, `${word}-${number}`, `Message of room ${number}`)
  })
}

/** The first request after a restart: nothing is in the memory of the server or of Postgres. */
async function measureCold(target: Target, api: Api, person: Account, variant: string): Promise<Measurement> {
  const device = await login(api, person.userId)
  await target.own!.kill('SIGTERM')
  await target.own!.start()
  const { milliseconds } = await startOf(target, device)
  return measurement({ benchmark: BENCHMARK, variant: `${variant}, cold`, p50Ms: milliseconds })
}

async function startOf({ baseUrl }: Target, device: Account) {
  const answer = await timedSliding(baseUrl, device)
  if (answer.rooms !== WINDOW) throw new Error(`a window of ${WINDOW} rooms held ${answer.rooms}`)
  return answer
}
