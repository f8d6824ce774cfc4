import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { readEventLists } from '../../src/outbound/event-lists.ts'

async function glance(event: string, name: string): Promise<unknown> {
  async function* body() {
    yield Buffer.from(`{"pdus":[${event}]}`)
  }
  const list = (await readEventLists(body(), ['pdus'])).list('pdus')
  expect(list.length).toBe(1)
  return list.glance!(0, name)
}

it.each([
  ['a number', '{"depth":12,"type":"t"}', 12],
  ['the last member', '{"type":"t","depth":0}', 0],
  ['spaces', '{ "depth": 7 , "type": "t" }', 7],
  ['a string', '{"depth":"@a:b.example"}', '@a:b.example'],
  ['its name in a string', '{"content":{"body":"\\"depth\\":5"},"depth":6}', 6],
])('of an event is seen without reading it: %s', async (_, event, seen) => {
  expect(await glance(event, 'depth')).toBe(seen)
})

it.each([
  ['nothing', '{"type":"t"}'],
  ['its name elsewhere too', '{"content":{"depth":5},"depth":6}'],
  ['the name twice', '{"depth":5,"depth":6}'],
  ['an escape', '{"depth":"\\u0040a:b.example"}'],
  ['other letters', '{"depth":"@ä:b.example"}'],
  ['a fraction', '{"depth":1.5}'],
  ['an exponent', '{"depth":1e5}'],
  ['less than nothing', '{"depth":-1}'],
  ['too many digits', '{"depth":12345678901234567}'],
  ['an object', '{"depth":{"depth":1}}'],
  ['too long a string', `{"depth":"${'a'.repeat(300)}"}`],
])('of an event is not seen without reading it: %s', async (_, event) => {
  expect(await glance(event, 'depth')).toBeUndefined()
})

it('a long answer that is all there at once leaves others their turn', async () => {
  const event = Buffer.from(`{"content":"${'x'.repeat(1_000)}"},`)
  let isRead = false
  async function* body() {
    yield Buffer.from('{"pdus":[')
    for (let n = 0; n < 2_000; n++) yield event
    yield Buffer.from('{}]}')
  }
  const reading = readEventLists(body(), ['pdus']).then((lists) => {
    isRead = true
    return lists.list('pdus').length
  })
  let turns = 0
  for (; !isRead; turns++) await setImmediate()
  expect(await reading).toBe(2_001)
  expect(turns).toBeGreaterThan(10)
})
