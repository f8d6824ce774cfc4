import { expect, test } from 'vitest'
import { findLineTests, LINES } from './hardening.ts'

test('every line of what was found from outside has a test, and every id is that of a line', () => {
  const proven = new Set(findLineTests().map(({ id }) => id))
  expect(Object.keys(LINES).filter((id) => !proven.has(id))).toEqual([])
  expect([...proven].filter((id) => !(id in LINES))).toEqual([])
})
