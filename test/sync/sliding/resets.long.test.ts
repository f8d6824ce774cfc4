import { expect, it } from 'vitest'
import { checkResets } from './checker/reset-history.ts'

/** How many random histories; set RESET_HISTORIES for fewer or more, and RESET_SEED for other ones. */
const HISTORIES = Number(process.env.RESET_HISTORIES ?? 60)
const SEED = Number(process.env.RESET_SEED ?? 1)

it('clients are right about rooms whose state is resolved anew, also while the server dies', {
  timeout: 3_600_000,
}, async () => {
  let resets = 0
  for (let seed = SEED; seed < SEED + HISTORIES; seed++)
    resets += (await checkResets(seed, 40, seed % 2 === 0 ? 0.1 : 0)).resets
  // Else it has seen nothing of what it is about.
  expect(resets).toBeGreaterThan(HISTORIES / 2)
})
