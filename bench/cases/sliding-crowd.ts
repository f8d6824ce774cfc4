import { type Api, createRoom, join, login, mapConcurrently, openApi, sendText } from '../../test/support/api.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { timedSliding } from '../sliding.ts'
import { openTarget } from '../target.ts'

export const BENCHMARK = 'sliding-crowd'
const PEOPLE = 200
const ROOMS = 300

/** After a restart, all people of a large server open their room lists at once. Each is in all rooms. */
export async function measureSlidingCrowd(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  const api = openApi(target.baseUrl, { connections: 32 })
  try {
    const people = await registerPeople(api, target, PEOPLE)
    await fillRooms(
      api,
      people.map(({ token }) => token),
    )
    const devices = await mapConcurrently(people, 8, ({ userId }) => login(api, userId))
    await target.own?.kill('SIGTERM')
    await target.own?.start()
    const begun = performance.now()
    const answers = await Promise.all(devices.map((device) => timedSliding(target.baseUrl, device)))
    const seconds = (performance.now() - begun) / 1_000
    return [
      measurement({
        benchmark: BENCHMARK,
        variant: `${PEOPLE} people in ${ROOMS} rooms, at once, cold`,
        perSecond: PEOPLE / seconds,
        ...latenciesOf(answers.map(({ milliseconds }) => milliseconds)),
        serverPeakMb: target.usage().server?.peakMb,
        postgresMb: target.usage().postgres?.proportionalMb,
        note: `done within ${seconds.toFixed(2)} s`,
      }),
    ]
  } finally {
    await api.close()
    await target.close()
  }
}

async function fillRooms(api: Api, [maker, ...others]: readonly string[]): Promise<void> {
  const word = newPrefix()
  const numbers = Array.from({ length: ROOMS }, (_, index) => index)
  const roomIds = await mapConcurrently(numbers, 16, (number) =>
    createRoom(api, maker!, { preset: 'public_chat', name: `Room ${number}` }),
  )
  const joins = roomIds.flatMap((roomId) => others.map((token) => ({ roomId, token })))
  await mapConcurrently(joins, 32, ({ roomId, token }) => join(api, token, roomId))
  await mapConcurrently(roomIds, 16, (roomId, index) =>
    sendText(api, maker!, roomId, `${word}-${index}`, 'Good morning'),
  )
}
