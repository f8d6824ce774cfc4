import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Constants, constantsOf, HABITS, loadOf, modelText, peopleWithin, shortages } from '../../bench/model.ts'
import { PROJECT_ROOT } from '../support/project.ts'

const results = readFileSync(join(PROJECT_ROOT, 'bench/RESULTS.md'), 'utf8')

const EVEN: Constants = {
  ...{ sendMs: 1, sendPostgresMs: 0.5, deliveryMs: 0.1, quietSyncMs: 0.1 },
  ...{ eventDiskBytes: 1_000, heldSyncBytes: 10_000, restMb: 100, passingOnMs: 0.5, storedPerSecond: 10_000 },
}

test('all that the model needs was measured', () => {
  const constants = constantsOf(results)
  for (const [name, value] of Object.entries(constants)) expect(value, name).toBeGreaterThan(0)
  expect(modelText(constants, HABITS)).not.toMatch(/NaN|Infinity|undefined/)
  expect(() => constantsOf(results.replaceAll('| noop-sync', '| other'))).toThrow('npm run bench -- noop-sync --write')
})

test('what people need is the sum of what they do', () => {
  const habits = { connected: 0.5, eventsPerDay: 86.4, peak: 2, listeners: 10, patience: 50 }
  const load = loadOf(1_000, EVEN, habits)
  expect(load.eventsPerSecond).toBeCloseTo(2)
  expect(load.held).toBe(500)
  // 2 events of 1 + 10 * 0.1 ms, and 10 quiet syncs of 0.1 ms, each second.
  expect(load.serverCores).toBeCloseTo(0.005)
  expect(load.postgresCores).toBeCloseTo(0.001)
  expect(peopleWithin({ server: 1, postgres: 1 }, EVEN, habits)).toBeCloseTo(140_000, -1)
  expect(peopleWithin({ server: 1, postgres: 0.1 }, EVEN, habits)).toBeCloseTo(70_000, -1)
})

test('it says what is too little first', () => {
  expect(shortages(1_000, EVEN, HABITS)).toEqual([])
  const many = shortages(10_000_000, EVEN, HABITS)
  expect(many[0]).toContain('limits.max_connections')
  expect(many.at(-1)).toContain('one Postgres')
})
