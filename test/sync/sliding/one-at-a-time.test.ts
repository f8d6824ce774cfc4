import { expect, it } from 'vitest'
import { createOneAtATime } from '../../../src/domain/sync/sliding/one-at-a-time.ts'

/** A client that may leave, of which it is known how many wait for that. */
class Client {
  aborted = false
  readonly listeners = new Set<() => void>()

  addEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.add(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.delete(listener)
  }

  leave(): void {
    this.aborted = true
    for (const listener of this.listeners) listener()
  }
}

it('the first request of a connection begins at once, and so does one whose client has left the one before', async () => {
  const turns = createOneAtATime()
  const [first, second] = [new Client(), new Client()]
  const running = turns.begin('a', first)
  expect(running).not.toBeInstanceOf(Promise)
  first.leave()
  expect(turns.begin('a', second)).not.toBeInstanceOf(Promise)
  expect(turns.begin('b', new Client())).not.toBeInstanceOf(Promise)
  expect((await running).isSuperseded).toBe(true)
})

it('a request that is read late, after its client has left, ends itself and not the one after it', async () => {
  const turns = createOneAtATime()
  const [late, client] = [new Client(), new Client()]
  const running = await turns.begin('a', client)
  const beginning = turns.begin('a', late)
  late.leave()
  expect((await beginning).isSuperseded).toBe(true)
  expect(running.aborted).toBe(false)
  expect((await turns.begin('a', late)).isSuperseded).toBe(true)
  expect(running.aborted).toBe(false)
  expect([late, client].map(({ listeners }) => listeners.size)).toEqual([0, 0])
})

it.each<[string, (client: Client, end: () => void) => void]>([
  ['ends', (_, end) => end()],
  ['is left by its client', (client) => client.leave()],
  ['goes on, and nobody leaves', () => {}],
])('the next request begins as soon as the one before %s', async (_, happen) => {
  const turns = createOneAtATime()
  const [first, second] = [new Client(), new Client()]
  const running = await turns.begin('a', first)
  const beginning = turns.begin('a', second)
  expect(beginning).toBeInstanceOf(Promise)
  expect(running.isSuperseded).toBe(false)
  happen(first, () => turns.end('a', running))
  const next = await beginning
  expect(next.aborted).toBe(false)
  expect([first, second].map(({ listeners }) => listeners.size)).toEqual([0, 0])
  const third = new Client()
  second.leave()
  expect((await turns.begin('a', third)).aborted).toBe(false)
  expect(next.isSuperseded).toBe(true)
})

it('of several that come while one runs, each begins, and the last stays', async () => {
  const turns = createOneAtATime()
  const running = await turns.begin('a', new Client())
  const [one, other] = await Promise.all([turns.begin('a', new Client()), turns.begin('a', new Client())])
  expect([running, one, other].map(({ isSuperseded }) => isSuperseded)).toEqual([true, true, false])
})
