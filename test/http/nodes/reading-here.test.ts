import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createReadingHere } from '../../../src/http/nodes/reading-here.ts'

const forwarder = { keep: async () => undefined, pass: async () => {}, free() {} }
const reading = {
  isAnywhere: () => true,
  isSlidingSync: () => false,
  takeSync: () => false,
  servedBy() {},
  enter: () => false,
  routing() {},
  isBatched: () => false,
  inBatch: async () => undefined,
}

function begin(here: ReturnType<typeof createReadingHere>): ServerResponse {
  const request = new IncomingMessage(new Socket())
  request.method = 'GET'
  const response = new ServerResponse(request)
  expect(here.take(request, response)).toBe(true)
  return response
}

it('what a node reads with is kept until its last answer is sent', async () => {
  const here = createReadingHere(forwarder)
  let isOver = false
  const over = here.begin(reading).then(() => {
    isOver = true
  })
  const answers = [begin(here), begin(here)]
  here.end()
  for (const answer of answers) {
    await new Promise((resolve) => setImmediate(resolve))
    expect(isOver).toBe(false)
    answer.emit('close')
  }
  await over
})

it('a client that reads slowly does not keep it for ever', async () => {
  const here = createReadingHere(forwarder, 1)
  const over = here.begin(reading)
  const answer = begin(here)
  here.end()
  await over
  expect(answer.destroyed).toBe(false)
})

it('a request is passed on whole, once, if it cannot travel in a batch after all', async () => {
  const passed: unknown[] = []
  const body = Buffer.from('{}')
  const here = createReadingHere({
    keep: async () => body,
    pass: async (_request, _response, known) => void passed.push(known),
    free() {},
  })
  void here.begin({
    ...reading,
    isBatched: () => true,
    inBatch() {
      throw new Error('a mistake')
    },
  })
  const request = new IncomingMessage(new Socket())
  request.method = 'PUT'
  expect(here.take(request, new ServerResponse(request))).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  expect(passed).toEqual([{ body }])
})
