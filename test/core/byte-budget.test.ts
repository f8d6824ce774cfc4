import { expect, test } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'

/** Of values that weigh so much that what an entry costs besides hardly counts. */
const TON = 1_000_000

function twoCaches(maxTons: number) {
  const budget = new ByteBudget(maxTons * TON)
  const gone: string[] = []
  const bytesOf = ({ tons }: { tons: number }) => tons * TON - 1_000
  const rooms = budget.part<string, { tons: number }>({ bytesOf, gone: (_, key) => gone.push(`room ${key}`) })
  const events = budget.part<number, { tons: number }>({ bytesOf, gone: (_, key) => gone.push(`event ${key}`) })
  return { budget, rooms, events, gone }
}

test('A3: what was not used for long goes first, whichever cache holds it', () => {
  const { budget, rooms, events, gone } = twoCaches(3)
  rooms.set('lobby', { tons: 1 })
  events.set(1, { tons: 1 })
  events.set(2, { tons: 1 })
  rooms.get('lobby')
  events.set(3, { tons: 1 })
  expect(gone).toEqual(['event 1'])
  events.get(2)
  rooms.set('hall', { tons: 2 })
  expect(gone).toEqual(['event 1', 'event 3', 'room lobby'])
  expect(budget.bytes).toBeLessThanOrEqual(3 * TON)
  expect(budget.bytes).toBe(rooms.bytes + events.bytes)
})

test('A3: what is used again and again stays, however much comes and goes beside it', () => {
  const { rooms, events } = twoCaches(10)
  for (let index = 0; index < 5; index++) rooms.set(`hall ${index}`, { tons: 1 })
  for (let index = 0; index < 1_000; index++) {
    events.set(index, { tons: 1 })
    for (let hall = 0; hall < 5; hall++) expect(rooms.get(`hall ${hall}`)).toBeDefined()
  }
  expect(rooms.size).toBe(5)
})

test('A3: where everything was used, something goes all the same', () => {
  const { budget, events } = twoCaches(200)
  for (let index = 0; index < 200; index++) events.set(index, { tons: 1 })
  for (let index = 0; index < 200; index++) events.get(index)
  events.set(200, { tons: 1 })
  expect(events.peek(200)).toBeDefined()
  expect(events.size).toBe(200)
  expect(budget.bytes).toBeLessThanOrEqual(200 * TON)
})

test('A3: what has grown is weighed at its next use, or when somebody says so', () => {
  const { budget, rooms, events, gone } = twoCaches(4)
  const lobby = { tons: 1 }
  rooms.set('lobby', lobby)
  events.set(1, { tons: 1 })
  lobby.tons = 3
  rooms.grown('lobby', { tons: 9 })
  expect(budget.bytes).toBeLessThan(3 * TON)
  rooms.get('lobby')
  expect(budget.bytes).toBeGreaterThan(3.9 * TON)
  lobby.tons = 4
  rooms.grown('lobby', lobby)
  expect(gone).toEqual(['event 1'])
})

test('A3: what is larger than the whole budget is not kept, and takes nothing with it but what it has displaced', () => {
  const { budget, events, gone } = twoCaches(2)
  events.set(1, { tons: 3 })
  expect(events.get(1)).toBeUndefined()
  expect(gone).toEqual(['event 1'])
  expect(budget.bytes).toBe(0)
  events.set(2, { tons: 1 })
  expect(events.get(2)).toEqual({ tons: 1 })
})

test('A3: what nobody used for a while goes, however much room there is', () => {
  const { budget, rooms, events, gone } = twoCaches(100)
  rooms.set('lobby', { tons: 1 })
  events.set(1, { tons: 1 })
  budget.grow(2)
  budget.grow(2)
  rooms.get('lobby')
  budget.grow(2)
  expect(gone).toEqual(['event 1'])
  budget.grow(2)
  budget.grow(2)
  expect(gone).toEqual(['event 1', 'room lobby'])
  expect(budget.bytes).toBe(0)
})

test('A3: the sum is right whatever is put, put again, removed and cleared', () => {
  const { budget, rooms, events } = twoCaches(50)
  for (let index = 0; index < 1_000; index++) {
    rooms.set(String(index % 17), { tons: 1 + (index % 5) })
    events.set(index % 31, { tons: 1 + (index % 3) })
    if (index % 7 === 0) rooms.delete(String(index % 13))
    if (index === 500) events.clear()
    expect(budget.bytes).toBe(rooms.bytes + events.bytes)
    expect(budget.bytes).toBeLessThanOrEqual(50 * TON)
  }
  rooms.clear()
  events.clear()
  expect(budget.bytes).toBe(0)
})
