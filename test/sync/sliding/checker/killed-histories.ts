import { afterAll, beforeAll, expect, it } from 'vitest'
import { registerBySecret, SECRET } from '../../../admin/office.ts'
import { Dice } from '../../../federation/dice.ts'
import { type Api, openApi } from '../../../support/api.ts'
import { type ChildServer, startChildServer } from '../../../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import type { RemoveRoom } from './actions.ts'
import { History, shortened } from './history.ts'
import { removeRoomAs } from './remove-room.ts'

/** How many random histories; set SLIDING_HISTORIES for fewer or more, and SLIDING_SEED for other ones. */
const HISTORIES = Number(process.env.SLIDING_HISTORIES ?? 300)
const SEED = Number(process.env.SLIDING_SEED ?? 10_000)
/** So many share each server that is killed. */
const TOGETHER = 10
const STEPS = 25
const KILLS = 2
const STORM_STEPS = 6
const STORM_MS = 120

/** One half of the histories: the halves are files of their own, which run side by side. */
export function testKilledHistories(half: 0 | 1): void {
  const groups = Math.ceil(HISTORIES / TOGETHER)
  const begin = SEED + TOGETHER * (half === 0 ? 0 : Math.ceil(groups / 2))
  const end = SEED + TOGETHER * (half === 0 ? Math.ceil(groups / 2) : groups)
  let database: TestDatabase
  let server: ChildServer
  let api: Api
  let removeRoom: RemoveRoom

  beforeAll(async () => {
    database = await createTestDatabase()
    server = await startChildServer({
      env: {
        HEARTH__DATABASE__URL: database.url,
        HEARTH__RATE_LIMITS__ENABLED: 'false',
        HEARTH__REGISTRATION__SHARED_SECRET: SECRET,
        HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
      },
    })
    api = openApi(server.baseUrl, { connections: 64 })
    removeRoom = removeRoomAs(api, (await registerBySecret(api, 'boss', true)).token)
  })

  afterAll(async () => {
    await api.close()
    await server.dispose()
    await database.drop()
  })

  /** Ends the server's process in the middle of what it does, and starts it again. */
  async function kill(afterMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    await server.kill('SIGKILL')
    await server.start()
  }

  it(`histories ${begin} to ${end - 1} with kills: each client is sent all, once, and nothing that is not so`, {
    timeout: 3_600_000,
  }, async () => {
    for (let first = begin; first < end; first += TOGETHER) {
      const dice = new Dice(first)
      const histories = Array.from({ length: TOGETHER }, (_, index) => new History(api, first + index, removeRoom))
      const all = (act: (history: History) => Promise<void>) =>
        Promise.all(
          histories.map((history) =>
            act(history).catch((error: Error) => {
              expect.fail(shortened(`seed ${history.seed}:\n${history.log.join('\n')}\n${error.message}`))
            }),
          ),
        )
      await all((history) => history.open())
      for (let storm = 0; storm < KILLS; storm++) {
        await all((history) => history.run(STEPS))
        await Promise.all([all((history) => history.endure(STORM_STEPS)), kill(dice.below(STORM_MS))])
      }
      await all((history) => history.run(STEPS))
      await all((history) => history.finish())
    }
  })
}
