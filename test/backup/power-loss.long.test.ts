import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { listBackups, openBackup } from '../../src/domain/backup/backup-files.ts'
import { createDirectoryBackups } from '../../src/domain/backup/directory-backups.ts'
import { findDamage } from '../../src/domain/backup/restore-backup.ts'
import { type CrashDisk, keepEarly, watchDisk } from '../support/crash-disk.ts'
import { S3_KEYS, startS3Service } from '../support/s3-service.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

let kept: KeptServer
let root: string
let place: string
let disk: CrashDisk
let count = 0

beforeAll(async () => {
  kept = await startKeptServer()
})
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hearth-power-'))
  place = join(root, 'disk/backups')
  mkdirSync(join(root, 'disk'))
  disk = watchDisk(join(root, 'disk'))
})
afterEach(() => {
  disk.close()
  rmSync(root, { recursive: true, force: true })
})
afterAll(() => kept.close())

/** What is left of the place if the power fails now; with a name that the disk happens to have kept before it was synced. */
function afterPowerLoss(early?: string): string {
  const into = join(root, `left-${++count}`)
  disk.leave(into)
  if (early !== undefined) keepEarly(early, join(root, 'disk'), into)
  return join(into, 'backups')
}

const list = (where: string): Promise<string[]> => listBackups(createDirectoryBackups(where))

/** All backups that count are whole, file by file. */
async function expectWhole(where: string, ids: readonly string[]): Promise<void> {
  expect(await list(where)).toEqual(ids)
  const store = createDirectoryBackups(where)
  const quiet = { store, progress: () => {}, signal: new AbortController().signal }
  for (const id of ids) expect(await findDamage(quiet, await openBackup(store, id))).toEqual([])
}

test('a power loss before the manifest leaves no backup, and one at its name or after leaves a whole one', async () => {
  const before: string[] = []
  const atManifest: string[] = []
  disk.onChange(({ kind, path }) => {
    if (kind !== 'rename') return
    // The disk may keep this name at once, and all others only when they are synced.
    if (path.endsWith('/manifest.json')) atManifest.push(afterPowerLoss(), afterPowerLoss(path))
    else before.push(afterPowerLoss(path))
  })
  expect(await kept.run(['backup', place])).toMatchObject({ code: 0 })
  const [id] = await list(place)
  expect(before.length).toBeGreaterThan(10)
  for (const where of before) expect(await list(where)).toEqual([])
  expect(atManifest).toHaveLength(2)
  await expectWhole(atManifest[0]!, [])
  await expectWhole(atManifest[1]!, [id!])
  await expectWhole(afterPowerLoss(), [id!])
})

test('a power loss while an old backup is removed leaves none that lacks files', async () => {
  expect(await kept.run(['backup', place])).toMatchObject({ code: 0 })
  const [old] = await list(place)
  const left: string[] = []
  disk.onChange(({ kind, path }) => {
    if (kind !== 'remove' || path.endsWith('.part')) return
    const where = afterPowerLoss()
    rmSync(join(where, path.slice(place.length)), { force: true })
    left.push(where)
  })
  expect(await kept.run(['backup', place, '--keep', '1d'])).toMatchObject({ code: 0 })
  const ids = await list(place)
  expect(ids).toHaveLength(1)
  expect(ids).not.toContain(old)
  expect(left.length).toBeGreaterThan(10)
  for (const where of left) await expectWhole(where, ids)
})

test('a service that speaks S3 is sent the manifest when it has all else', async () => {
  const service = await startS3Service()
  const order: string[] = []
  const note = (what: string) => (message: unknown) => {
    const { method, url } = (message as { request: IncomingMessage }).request
    if (method === 'PUT') order.push(`${what} ${url}`)
  }
  const [began, ended] = [note('began'), note('ended')]
  subscribe('http.server.request.start', began)
  subscribe('http.server.response.finish', ended)
  try {
    const env = {
      HEARTH__BACKUP__S3__ENDPOINT: service.endpoint,
      HEARTH__BACKUP__S3__ACCESS_KEY_ID: S3_KEYS.access_key_id,
      HEARTH__BACKUP__S3__SECRET_ACCESS_KEY: S3_KEYS.secret_access_key,
      HEARTH__BACKUP__PLACE: `s3://${S3_KEYS.bucket}/some/where`,
    }
    expect(await kept.run(['backup'], env)).toMatchObject({ code: 0 })
  } finally {
    unsubscribe('http.server.request.start', began)
    unsubscribe('http.server.response.finish', ended)
    await service.close()
  }
  const last = order.splice(-2)
  expect(last).toEqual([
    expect.stringMatching(/^began .*\/manifest\.json$/),
    expect.stringMatching(/^ended .*\/manifest\.json$/),
  ])
  const named = (what: string) =>
    order
      .filter((line) => line.startsWith(what))
      .map((line) => line.slice(6))
      .sort()
  expect(named('began').length).toBeGreaterThan(10)
  expect(named('ended')).toEqual(named('began'))
})
