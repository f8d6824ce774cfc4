import { login, mapConcurrently, openApi, register } from '../../test/support/api.ts'
import { newPrefix } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'register-login'
const AT_ONCE = 4

/** With password hashing at its real cost. */
export async function measureRegisterLogin(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options, { withRealPasswords: true })
  const api = openApi(target.baseUrl)
  try {
    const names: string[] = []
    const word = newPrefix()
    const registering = await repeat(target, 'register', options.seconds, async (number) => {
      await register(api, `${word}-${number}`, target.registrationToken)
      names.push(`${word}-${number}`)
    })
    const loggingIn = await repeat(target, 'login', options.seconds, async (number) => {
      await login(api, names[number % names.length]!)
    })
    return [registering, loggingIn]
  } finally {
    await api.close()
    await target.close()
  }
}

async function repeat(target: Target, name: string, seconds: number, act: (number: number) => Promise<void>) {
  const times: number[] = []
  const begun = performance.now()
  const deadline = begun + seconds * 1_000
  let next = 0
  const one = async () => {
    while (performance.now() < deadline) {
      const start = performance.now()
      await act(next++)
      times.push(performance.now() - start)
    }
  }
  const cost = await costOf(target, async () => {
    await mapConcurrently(Array.from({ length: AT_ONCE }), AT_ONCE, one)
    return times.length
  })
  const perSecond = times.length / ((performance.now() - begun) / 1_000)
  const variant = `${name}, ${AT_ONCE} at once`
  return measurement({ benchmark: BENCHMARK, variant, perSecond, ...latenciesOf(times), ...cost })
}
