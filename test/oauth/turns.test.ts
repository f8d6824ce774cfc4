import { expect, it } from 'vitest'
import type { ProtocolError } from '../../src/core/errors.ts'
import { MAX_STEPS_WAITING, STEPS_AT_ONCE } from '../../src/domain/limits/oauth.ts'
import { createTurns } from '../../src/domain/oauth/turns.ts'

it('steps of sign-ins run a few at a time, in their order, also after one that failed; too many are refused', async () => {
  const turns = createTurns(STEPS_AT_ONCE)
  const order: number[] = []
  const ends: (() => void)[] = []
  let running = 0
  let most = 0
  const step = (index: number) => async () => {
    running += 1
    most = Math.max(most, running)
    order.push(index)
    await new Promise<void>((resolve) => ends.push(resolve))
    running -= 1
    if (index === 1) throw new Error('failed')
    return index
  }
  const all = Array.from({ length: STEPS_AT_ONCE + MAX_STEPS_WAITING }, (_, index) =>
    turns.run(step(index)).catch((error: Error) => error.message),
  )
  const refused = await turns.run(step(-1)).catch((error: ProtocolError) => error)
  expect(refused).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', status: 429 })
  while (order.length < all.length || running > 0) {
    ends.splice(0).forEach((end) => {
      end()
    })
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(most).toBe(STEPS_AT_ONCE)
  expect(order).toEqual(all.map((_, index) => index))
  expect(await Promise.all(all)).toEqual(all.map((_, index) => (index === 1 ? 'failed' : index)))
  expect(await turns.run(async () => 'free')).toBe('free')
})
