import { expect, it } from 'vitest'
import { MAX_FACT_CHARS } from '../../../src/domain/limits/sliding-sync.ts'
import { nameIn, typeIn } from '../../../src/domain/sync/sliding/room-facts.ts'

it('keeps the beginning of what anybody may call a room, and takes an empty type for none', () => {
  const long = 'x'.repeat(60_000)
  expect(nameIn({ name: long })).toHaveLength(MAX_FACT_CHARS)
  expect(typeIn({ type: long })).toHaveLength(MAX_FACT_CHARS)
  expect([nameIn({ name: 'Lobby' }), typeIn({ type: 'm.space' }), typeIn({ type: '' })]).toEqual([
    'Lobby',
    'm.space',
    null,
  ])
})
