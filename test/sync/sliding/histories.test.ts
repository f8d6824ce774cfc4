import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse } from '../../rooms/people.ts'
import { History, shortened } from './checker/history.ts'

/** How many random histories; set SLIDING_HISTORIES for more, and SLIDING_SEED for other ones. */
const HISTORIES = Number(process.env.SLIDING_HISTORIES ?? 12)
const SEED = Number(process.env.SLIDING_SEED ?? 1)
const STEPS = 60

let house: House

beforeAll(async () => {
  house = await openHouse()
})

afterAll(() => house.close())

/** @returns what went wrong */
async function live(history: History): Promise<string | undefined> {
  try {
    await history.run(STEPS, () => house.restart())
    await history.finish()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

it('each client is sent all that its user may see, once, and nothing that is not so', {
  timeout: 3_600_000,
}, async () => {
  for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
    const history = new History(house.api, seed)
    await history.open()
    const problem = await live(history)
    if (problem !== undefined) expect.fail(shortened(`seed ${seed}:\n${history.log.join('\n')}\n${problem}`))
  }
})
