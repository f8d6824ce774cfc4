import { setImmediate as later } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Dispatcher } from 'undici'
import { expect, test } from 'vitest'
import { TimeLimit } from '../../src/outbound/deadline.ts'
import { type Answered, WholeAnswer } from '../../src/outbound/whole-answer.ts'

test('an answer that comes in very many pieces is whole, and the pieces are not kept', async () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const limit = new TimeLimit(60_000, () => {})
  limit.met()
  const controller: Dispatcher.DispatchController = {
    ...{ aborted: false, paused: false, reason: null, pause() {}, resume() {} },
    abort: (reason) => expect.unreachable(reason.message),
  }
  const pieces: WeakRef<Buffer>[] = []
  const read = new Promise<Answered>((resolve, reject) => {
    const waiting = { began() {}, ended() {} }
    const limits = { limit, timeoutMs: 60_000, maxBytes: 10_000 }
    const answer = new WholeAnswer({ ...limits, waiting, answers: undefined, resolve, reject })
    answer.onRequestStart(controller)
    answer.onResponseStart(controller, 200, {})
    for (let n = 0; n < 10_000; n++) {
      const piece = Buffer.from([n % 251])
      pieces.push(new WeakRef(piece))
      answer.onResponseData(controller, piece)
    }
    // What a weak reference showed lives until its task ends.
    const end = async (): Promise<void> => {
      await later()
      collect()
      expect(pieces.filter((piece) => piece.deref() !== undefined).length).toBeLessThan(1_000)
      answer.onResponseEnd()
    }
    end().catch(reject)
  })
  const { body } = await read
  expect(body).toEqual(Buffer.from(Array.from({ length: 10_000 }, (_, n) => n % 251)))
})
