import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Api, type Json, openApi, PASSWORD, register } from '../support/api.ts'

let server: AccountServer
let api: Api

beforeAll(async () => {
  server = await startAccountServer({ passwords: { scrypt: { log2_cost: 10, block_size: 8 } } })
  api = openApi(server.baseUrl)
  await register(api, 'known')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const enter = (identifier: Json, password: string) =>
  api.request('POST', '/login', { body: { type: 'm.login.password', identifier, password } })

const named = (user: string) => ({ type: 'm.id.user', user })
const mailed = (address: string) => ({ type: 'm.id.thirdparty', medium: 'email', address })

/** Reliability and security, row 47. */
it('an unknown user and a wrong password take the same time, within 5% of their means over 1,000', async () => {
  const kinds: [name: string, ask: (n: number) => Promise<{ status: number }>][] = [
    ['a wrong password', (n) => enter(named('known'), `wrong password ${n}`)],
    ['an unknown user', (n) => enter(named(`u${n}`), PASSWORD)],
  ]
  const times = new Map(kinds.map(([name]) => [name, [] as number[]]))
  for (let n = 0; n < 1_050; n++) {
    // In turns, so that what else the machine does meets both alike; the first are not counted.
    for (const [name, ask] of n % 2 === 0 ? kinds : kinds.toReversed()) {
      const begun = performance.now()
      const { status } = await ask(n)
      if (status !== 403) throw new Error(`${name}: ${status}`)
      if (n >= 50) times.get(name)!.push(performance.now() - begun)
    }
  }
  // Of a busy machine's pauses, that belong to nobody, the slowest tenth is left out on both sides.
  const mean = (all: number[]) => {
    const kept = all.toSorted((a, b) => a - b).slice(0, Math.floor(all.length * 0.9))
    return kept.reduce((sum, ms) => sum + ms, 0) / kept.length
  }
  const [wrong = 0, unknown = 0] = [...times.values()].map(mean)
  console.info(`login: wrong password ${wrong.toFixed(3)} ms, unknown user ${unknown.toFixed(3)} ms`)
  expect(Math.abs(wrong - unknown) / Math.max(wrong, unknown)).toBeLessThan(0.05)
}, 120_000)

it('an unknown address is hashed for as well', async () => {
  const taken = async (identifier: Json) => {
    const begun = performance.now()
    await enter(identifier, PASSWORD)
    return performance.now() - begun
  }
  const [unknown, wrong]: [number[], number[]] = [[], []]
  for (let n = 0; n < 40; n++) {
    unknown.push(await taken(mailed('nobody@example.org')))
    wrong.push(await taken(named('nobody')))
  }
  const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[all.length / 2]!
  expect(median(unknown) / median(wrong)).toBeGreaterThan(0.5)
})
