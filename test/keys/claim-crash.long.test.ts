import { afterEach, expect, test } from 'vitest'
import { type Account, type Api, type Json, mapConcurrently, openApi, register } from '../support/api.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { deviceMaker } from './key-maker.ts'

const KEYS = 120
const KILLS = 3
const ASKING = 8
const SIGNED = 'signed_curve25519'

let server: ChildServer | undefined
let api: Api | undefined
afterEach(async () => {
  await api?.close()
  await server?.dispose()
})

interface Stage {
  readonly api: Api
  /** Each resolves when the server is back. */
  readonly deaths: readonly Promise<void>[]
  received(name: string): void
}

/** Claims until no one-time key is left, over the deaths of the server. Gives the names of the keys that were received. */
async function drain(by: Account, of: Account, stage: Stage): Promise<void> {
  const body = { one_time_keys: { [of.userId]: { [of.deviceId]: SIGNED } } }
  for (;;) {
    const death = stage.deaths.at(-1)
    const answer = await stage.api.request('POST', '/keys/claim', { token: by.token, body }).catch(() => undefined)
    if (answer?.status !== 200) {
      if (stage.deaths.length === 0) throw new Error(`no death, and yet ${JSON.stringify(answer)}`)
      await Promise.all([death, stage.deaths.at(-1)])
      continue
    }
    const [name] = Object.keys(answer.body.one_time_keys[of.userId]?.[of.deviceId] ?? {})
    if (name === undefined || name === `${SIGNED}:fallback`) return
    stage.received(name)
  }
}

test('no one-time key is received twice, and none comes back, over kill -9 in the middle of claims', async () => {
  server = await startChildServer({ env: { HEARTH__RATE_LIMITS__ENABLED: 'false' } })
  api = openApi(server.baseUrl)
  const [alice, bob] = [await register(api, 'alice'), await register(api, 'bob')]
  const maker = deviceMaker(bob)
  const one_time_keys = maker.keys(KEYS)
  const body = { device_keys: maker.identity(), one_time_keys, fallback_keys: maker.named(`${SIGNED}:fallback`) }
  await api.call('POST', '/keys/upload', { token: bob.token, body })
  const received: string[] = []
  const deaths: Promise<void>[] = []
  const stage: Stage = {
    api,
    deaths,
    received(name) {
      received.push(name)
      if (deaths.length < KILLS && received.length >= ((deaths.length + 1) * KEYS) / (KILLS + 2)) {
        deaths.push(server!.kill('SIGKILL').then(() => server!.start()))
      }
    },
  }
  await mapConcurrently(Array.from({ length: ASKING }), ASKING, () => drain(alice, bob, stage))
  await Promise.all(deaths)
  expect(deaths.length).toBe(KILLS)
  expect(new Set(received).size).toBe(received.length)
  // Those whose answers were lost are gone: at most one for each who asked, for each death.
  expect(KEYS - received.length).toBeLessThanOrEqual(ASKING * KILLS)
  const again: Json = await api.call('POST', '/keys/upload', { token: bob.token, body: { one_time_keys } })
  expect(again).toEqual({ one_time_key_counts: { [SIGNED]: 0 } })
}, 120_000)
