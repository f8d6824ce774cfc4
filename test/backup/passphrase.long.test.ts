import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { filesIn as files, manifestIn } from './files.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

let kept: KeptServer

beforeAll(async () => {
  kept = await startKeptServer()
})
afterAll(() => kept.close())

test('an encrypted backup opens with its passphrase alone', async () => {
  const { run, place: plain } = kept
  const place = `${plain}-secret`
  const env = { HEARTH__BACKUP__PASSPHRASE: 'correct horse' }
  expect((await run(['backup', place], env)).stdout).toContain(', encrypted')
  expect(files(place).filter((name) => readFileSync(name).includes('kept'))).toEqual([
    join(place, 'hearth-backups.json'),
    manifestIn(place).path,
  ])
  expect((await run(['backup', 'verify', place], env)).code).toBe(0)
  expect((await run(['backup', 'verify', place])).stderr).toContain('give its passphrase')
  const wrong = await run(['backup', 'verify', place, '--passphrase'], {}, 'correct mule\n')
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('the passphrase is not that of') })
  // A backup with another passphrase would not open with the first: told before anything is written.
  const before = files(place)
  expect((await run(['backup', place, '--passphrase'], {}, 'correct mule\n')).stderr).toContain('is not that of')
  expect(files(place)).toEqual(before)
})
