import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ARCHIVE_BYTES_PER_SECOND, ARCHIVE_PAUSE_MS } from '../../src/domain/limits/oauth.ts'
import { paced } from '../../src/routes/account/data/paced.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

async function* second() {
  for (;;) yield Buffer.alloc(ARCHIVE_BYTES_PER_SECOND)
}

it('passes on what is taken fast enough, with pauses', async () => {
  const end = vi.fn()
  const pieces = paced(second(), end)
  for (let piece = 0; piece < 300; piece += 1) {
    await pieces.next()
    vi.advanceTimersByTime(piece === 100 ? ARCHIVE_PAUSE_MS / 2 : 999)
  }
  expect(end).not.toHaveBeenCalled()
})

it('ends what stands still, and what is taken too slowly for long', async () => {
  const [stopped, slow] = [vi.fn(), vi.fn()]
  await paced(second(), stopped).next()
  vi.advanceTimersByTime(ARCHIVE_PAUSE_MS + 1_001)
  expect(stopped).toHaveBeenCalledOnce()
  const pieces = paced(second(), slow)
  for (let piece = 0; piece < 15; piece += 1) {
    await pieces.next()
    vi.advanceTimersByTime(10_000)
  }
  expect(slow).toHaveBeenCalled()
})
