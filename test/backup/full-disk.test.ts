import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uploadFile } from '../support/media.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

const MIB = 1024 * 1024
const directory = mkdtempSync(join(tmpdir(), 'hearth-full-'))
const mounted: string[] = []
let kept: KeptServer

beforeAll(async () => {
  kept = await startKeptServer()
  await uploadFile(kept.server.baseUrl, kept.alice.token, randomBytes(12 * MIB), {})
})
afterAll(async () => {
  for (const place of mounted) execFileSync('umount', [place])
  rmSync(directory, { recursive: true, force: true })
  await kept.close()
})

/** A file system of its own; undefined where this process may not make one. */
function smallDisk(bytes: number): string | undefined {
  const place = mkdtempSync(join(directory, 'disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', place], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  mounted.push(place)
  return place
}

test('a disk that is too small is named before anything is written', async (context) => {
  const place = smallDisk(64 * 1024) ?? context.skip('only root may make a small disk')
  const { code, stderr } = await kept.run(['backup', place])
  expect(stderr).toMatch(/has \d+ MiB left, and the backup may take/)
  expect([code, readdirSync(place)]).toEqual([1, []])
})

test('a disk that fills ends the backup in words, and half a backup counts as none', async (context) => {
  const place = smallDisk(8 * MIB) ?? context.skip('only root may make a small disk')
  const { code, stderr } = await kept.run(['backup', place])
  expect(stderr).toContain(`the disk of ${place} is full: make room there`)
  expect(code).toBe(1)
  expect((await kept.run(['backup', 'list', place])).stdout).toContain('holds no whole backup')
})
