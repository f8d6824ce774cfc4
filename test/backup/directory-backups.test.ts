import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDirectoryBackups } from '../../src/domain/backup/directory-backups.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hearth-place-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function* halves(text: string, beforeSecond: () => Promise<unknown>): AsyncGenerator<Buffer> {
  const middle = text.length / 2
  yield Buffer.from(text.slice(0, middle))
  await beforeSecond()
  yield Buffer.from(text.slice(middle))
}

test('two processes that write a file of one name leave a whole one, and neither fails', async () => {
  const [one, other] = [createDirectoryBackups(folder), createDirectoryBackups(folder)]
  // The second begins and ends while the first is in the middle.
  await one.write(
    'log/piece',
    halves('a'.repeat(1_000), () =>
      other.write(
        'log/piece',
        halves('b'.repeat(2_000), async () => {}),
      ),
    ),
  )
  expect(await readFile(join(folder, 'log/piece'), 'utf8')).toBe('a'.repeat(1_000))
  expect(await readdir(join(folder, 'log'))).toEqual(['piece'])
})
