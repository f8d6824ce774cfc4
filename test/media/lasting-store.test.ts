import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { lasting } from '../../src/domain/media/lasting-store.ts'

const digest = Buffer.alloc(32)

/** What it is asked for is sent piece by piece; nothing is where it is asked for a range. */
function openStore() {
  const sent: Readable[] = []
  const state = { isClosed: false }
  const store = lasting({
    store: {
      async open(_digest, range) {
        if (range?.first === 0) return undefined
        if (range !== undefined) throw new Error('out of order')
        const content = new Readable({ read() {} })
        sent.push(content)
        return content
      },
    },
    async close() {
      state.isClosed = true
    },
  })
  return { ...store, sent, state }
}

it('a store is closed once the last download has ended, or was broken off', async () => {
  const { store, close, sent, state } = openStore()
  const whole = await store.open(digest)
  const broken = await store.open(digest)
  const closed = close()
  broken!.destroy()
  sent[0]!.push('the rest')
  sent[0]!.push(null)
  await new Promise((resolve) => broken!.once('close', resolve))
  expect(state.isClosed).toBe(false)
  const chunks: Buffer[] = []
  for await (const chunk of whole as AsyncIterable<Buffer>) chunks.push(chunk)
  expect(Buffer.concat(chunks).toString()).toBe('the rest')
  await closed
  expect(state.isClosed).toBe(true)
})

it('is closed at once if nobody reads: not of what is not there, nor of what failed', async () => {
  const { store, close, state } = openStore()
  expect(await store.open(digest, { first: 0, last: 1 })).toBeUndefined()
  await expect(store.open(digest, { first: 1, last: 1 })).rejects.toThrow('out of order')
  await close()
  expect(state.isClosed).toBe(true)
})
