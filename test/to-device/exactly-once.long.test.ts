import { afterEach, expect, test } from 'vitest'
import { diceOf } from '../http/fuzz/values.ts'
import { type Api, openApi } from '../support/api.ts'
import { type ChildServer, isAlive, startChildServer } from '../support/child-server.ts'
import { startServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { expectExactlyOnce, sendAmidBreakage } from './breakage.ts'
import { type Device, userWithDevices } from './devices.ts'

/** `TO_DEVICE_SEED=7 TO_DEVICE_MESSAGES=5000 npx vitest run test/to-device/exactly-once.long.test.ts` tries other moments, and more of them. */
const SEED = Number(process.env.TO_DEVICE_SEED ?? Math.floor(Math.random() * 2 ** 31))
const MESSAGES = Number(process.env.TO_DEVICE_MESSAGES ?? 400)
const SENDERS = 3
const TIMEOUT_MS = 60_000 + MESSAGES * 200

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function prepare(baseUrl: string): Promise<{ api: Api; receiver: Device; senders: Device[] }> {
  const api = openApi(baseUrl, { connections: 64 })
  closing.push(() => api.close())
  const [receiver] = (await userWithDevices(api, 'receiver')) as [Device]
  const senders: Device[] = []
  while (senders.length < SENDERS) senders.push(...(await userWithDevices(api, `sender${senders.length}`)))
  return { api, receiver, senders }
}

const arrivedAre = (arrived: () => number, share: number) =>
  waitUntil('messages', () => arrived() >= MESSAGES * share, { timeoutMs: TIMEOUT_MS })

test(
  `each message comes exactly once while connections break and the server restarts (TO_DEVICE_SEED=${SEED})`,
  async () => {
    const server = await startServer()
    closing.push(() => server.close())
    const { receiver, senders } = await prepare(server.baseUrl)
    const dice = diceOf(SEED, 'restarts')
    const received = await sendAmidBreakage({
      ...{ dice, messages: MESSAGES, senders, receiver },
      async breakThings(arrived) {
        for (const share of [0.1, 0.4, 0.7]) {
          await arrivedAre(arrived, share + dice.below(100) / 1000)
          await server.restart()
        }
      },
    })
    expectExactlyOnce(received, MESSAGES, SENDERS)
    const [row] = await server.database.db.query<{ count: number }>('SELECT count(*) AS count FROM to_device')
    expect(row!.count).toBe(0)
  },
  TIMEOUT_MS,
)

test(
  `each message comes exactly once over kill -9 of the server and of Postgres (TO_DEVICE_SEED=${SEED})`,
  async () => {
    const server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' } })
    closing.push(() => server.dispose())
    const { receiver, senders } = await prepare(server.baseUrl)
    const dice = diceOf(SEED, 'kills')
    const received = await sendAmidBreakage({
      ...{ dice, messages: MESSAGES, senders, receiver },
      async breakThings(arrived) {
        for (const [share, kill] of [
          [0.1, killServer],
          [0.4, killPostgres],
          [0.7, killServer],
        ] as const) {
          await arrivedAre(arrived, share + dice.below(100) / 1000)
          await kill(server)
        }
      },
    })
    expectExactlyOnce(received, MESSAGES, SENDERS)
  },
  TIMEOUT_MS,
)

async function killServer(server: ChildServer): Promise<void> {
  await server.kill('SIGKILL')
  await server.start()
}

/** The server either brings its Postgres back by itself or gives up, as a supervisor would then see and start it again. */
async function killPostgres(server: ChildServer): Promise<void> {
  const victim = await waitUntil('the process id of Postgres', () => server.postmasterPid())
  process.kill(victim, 'SIGKILL')
  await waitUntil('the end of Postgres', () => !isAlive(victim))
  await waitUntil('another Postgres, or the end of the server', () => {
    const pid = server.postmasterPid()
    return !server.isRunning() || (pid !== undefined && pid !== victim)
  })
  if (server.isRunning()) await server.waitReady()
  else await server.start()
}
