import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Office, openOffice } from '../../admin/office.ts'
import { History, shortened } from './checker/history.ts'
import { removeRoomAs } from './checker/remove-room.ts'

/** How many random histories; set SLIDING_HISTORIES for more, and SLIDING_SEED for other ones. */
const HISTORIES = Number(process.env.SLIDING_HISTORIES ?? 12)
const SEED = Number(process.env.SLIDING_SEED ?? 1)
const STEPS = 60

let office: Office

beforeAll(async () => {
  office = await openOffice()
})

afterAll(() => office.close())

/** @returns what went wrong */
async function live(history: History): Promise<string | undefined> {
  try {
    await history.run(STEPS, () => office.server.restart())
    await history.finish()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

it('each client is sent all that its user may see, once, and nothing that is not so', {
  timeout: 3_600_000,
}, async () => {
  const removeRoom = removeRoomAs(office.api, office.boss.token)
  for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
    const history = new History(office.api, seed, removeRoom)
    await history.open()
    const problem = await live(history)
    if (problem !== undefined) expect.fail(shortened(`seed ${seed}:\n${history.log.join('\n')}\n${problem}`))
  }
})
