import { expect, test } from 'vitest'
import { ArrivingBodies } from '../../src/http/arriving-bodies.ts'

test('what has come is counted of bodies that stay in memory, as long as they are on their way', () => {
  const arriving = new ArrivingBodies(60_000)
  const body = (bytes: number, isFile: boolean) => ({ bytes, seconds: 0, isFile, tooSlow: () => {} })
  const [first, second, file] = [body(100, false), body(20, false), body(3_000, true)]
  for (const one of [first, second, file]) arriving.enter(one)
  expect(arriving.bytes()).toBe(120)
  first.bytes += 50
  expect(arriving.bytes()).toBe(170)
  arriving.leave(first)
  expect(arriving.bytes()).toBe(20)
  arriving.leave(second)
  arriving.leave(file)
  expect(arriving.bytes()).toBe(0)
})
