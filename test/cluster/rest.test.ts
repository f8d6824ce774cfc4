import { afterEach, expect, it } from 'vitest'
import { createStandbyRest, type StandbyRest } from '../../src/domain/standby/rest.ts'
import type { Reader } from '../../src/store/db/db.ts'
import { waitUntil } from '../support/wait.ts'

/** A line to the database on which each question waits until the test answers it. */
function openLine() {
  const asked: { answer(): void; fail(): void }[] = []
  const db: Reader = {
    query: () =>
      new Promise((resolve, reject) => {
        asked.push({ answer: () => resolve([]), fail: () => reject(new Error('no answer')) })
      }),
  }
  const next = (count: number) => waitUntil(`${count} questions`, () => asked.length >= count && asked[count - 1])
  return { db, asked, next }
}

let rest: StandbyRest
afterEach(() => rest.close())

it('a rest ends when the database answers a question of its own, and never by time', async () => {
  const { db, asked, next } = openLine()
  rest = createStandbyRest(db, 1)
  expect(rest.isOn()).toBe(false)
  rest.begin()
  rest.begin()
  for (let count = 1; count <= 3; count++) {
    const question = await next(count)
    expect(rest.isOn()).toBe(true)
    // One at a time, however many requests began it.
    rest.begin()
    expect(asked).toHaveLength(count)
    question.fail()
  }
  const last = await next(4)
  expect(rest.isOn()).toBe(true)
  last.answer()
  await waitUntil('the end of the rest', () => !rest.isOn())
  rest.begin()
  await next(5)
})

it('what is closed asks nothing more', async () => {
  const { db, asked, next } = openLine()
  rest = createStandbyRest(db, 1)
  rest.begin()
  const question = await next(1)
  rest.close()
  question.fail()
  rest.begin()
  await new Promise((resolve) => setImmediate(resolve))
  expect(asked).toHaveLength(1)
  expect(rest.isOn()).toBe(true)
})
