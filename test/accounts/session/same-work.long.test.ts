import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Api, type Json, openApi, PASSWORD, register } from '../../support/api.ts'

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

const KINDS: [name: string, ask: (n: number) => Promise<{ status: number }>][] = [
  ['a wrong password', (n) => enter(named('known'), `wrong password ${n}`)],
  ['an unknown user', (n) => enter(named(`u${n}`), PASSWORD)],
]

/** The time that a tenth of the calls stay below, for each kind: pauses of a busy machine lie above it. */
async function quickTenths(calls: number): Promise<number[]> {
  const times = KINDS.map((): number[] => [])
  for (let n = 0; n < calls; n++) {
    // In turns, so that what else the machine does meets both alike.
    for (const kind of n % 2 === 0 ? [0, 1] : [1, 0]) {
      const [name, ask] = KINDS[kind]!
      const begun = performance.now()
      const { status } = await ask(n)
      if (status !== 403) throw new Error(`${name}: ${status}`)
      times[kind]!.push(performance.now() - begun)
    }
  }
  return times.map((all) => all.toSorted((x, y) => x - y)[Math.floor(all.length / 10)]!)
}

/** Reliability and security, row 47. A real difference shows in every round; a busy machine's does not. */
it('an unknown user and a wrong password take the same time, within 5% over 1,000 calls', async () => {
  await quickTenths(50)
  const differences: number[] = []
  while (differences.length < 5 && !differences.some((difference) => difference < 0.05)) {
    const [wrong = 0, unknown = 0] = await quickTenths(1_000)
    console.info(`login: wrong password ${wrong.toFixed(3)} ms, unknown user ${unknown.toFixed(3)} ms`)
    differences.push(Math.abs(wrong - unknown) / Math.max(wrong, unknown))
  }
  expect(Math.min(...differences)).toBeLessThan(0.05)
}, 300_000)

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
