import { expect, test } from 'vitest'
import type { UserId } from '../../../src/core/ids.ts'
import { JsonBytes } from '../../../src/core/json-bytes.ts'
import { createAnswerPlaces } from '../../../src/domain/sync/first/answer-places.ts'
import { createHeldSyncs } from '../../../src/domain/sync/held-syncs.ts'
import { createSentAnswers } from '../../../src/domain/sync/sent-answers.ts'
import { waitUntil } from '../../support/wait.ts'

const MB = 1 << 20

test('an answer is written where one before it was, once nobody reads that any more', () => {
  const places = createAnswerPlaces()
  const written = (letter: string) => {
    const json = new JsonBytes(places.take(MB)).text(JSON.stringify(letter.repeat(300_000)))
    return { json, whole: json.toBuffer() }
  }
  const isAt = (one: Buffer, other: Buffer) => one.buffer === other.buffer
  const [first, second] = [written('a'), written('b')]
  expect(isAt(second.whole, first.whole)).toBe(false)
  first.json.release()
  first.json.release()
  const [third, fourth] = [written('c'), written('d')]
  expect([third, fourth].map(({ whole }) => isAt(whole, first.whole))).toEqual([true, false])
  expect([second, third, fourth].map(({ whole }) => whole.toString('utf8', 0, 3))).toEqual(['"bb', '"cc', '"dd'])
})

test('an answer keeps its place until its client has it, or is gone', () => {
  const places = createAnswerPlaces()
  const answers = createSentAnswers({ held: createHeldSyncs() })
  const by = { userId: '@a:x' as UserId, userNid: 1, deviceId: 'A', tokenNid: 1, isGuest: false }
  const place = places.take(MB)!
  const { body, closed } = answers.send(by, new JsonBytes(place).text('"sent"').bytes(Buffer.alloc(100_000, 'x')))
  expect(places.take(MB)!.bytes === place.bytes).toBe(false)
  closed!()
  expect(places.take(MB)!.bytes === place.bytes).toBe(true)
  expect((body as Buffer).buffer === place.bytes.buffer).toBe(true)
})

test('a place is taken for answers that fill at least half of it, and short ones get none', () => {
  const places = createAnswerPlaces()
  const place = places.take(2 * MB)!
  place.leave()
  expect(places.take(1_000)).toBeUndefined()
  expect(places.take(0)).toBeUndefined()
  expect(places.take(MB - 1)!.bytes === place.bytes).toBe(false)
  expect(places.take(2 * MB + 1)!.bytes === place.bytes).toBe(false)
  expect(places.take(MB)!.bytes === place.bytes).toBe(true)
})

test('sixteen megabytes are kept at most, and not for long', async () => {
  const places = createAnswerPlaces({ keptForMs: 20 })
  const takeMany = () => Array.from({ length: 20 }, () => places.take(MB)!)
  const many = takeMany()
  const before = new Set(many.map(({ bytes }) => bytes))
  const again = (some: ReturnType<typeof takeMany>) => some.filter(({ bytes }) => before.has(bytes)).length
  for (const place of many) place.leave()
  const taken = takeMany()
  expect(again(taken)).toBe(16)
  for (const place of taken) place.leave()
  await waitUntil('they are gone', () => {
    const now = takeMany()
    const isGone = again(now) === 0
    for (const place of now) place.leave()
    return Promise.resolve(isGone)
  })
})
