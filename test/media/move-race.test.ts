import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { removeUnknown } from '../../src/cli/media/media-move.ts'
import { createDirectoryStore } from '../../src/domain/media/directory-store.ts'
import { createLibrary, type Library } from '../../src/domain/media/library.ts'
import type { MediaStore } from '../../src/domain/media/media-store.ts'
import { createSpool, type Spool } from '../../src/domain/media/spool.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

const bytes = Buffer.from('a picture that two people have')
const digest = createHash('sha256').update(bytes).digest()
const content = { digest, bytes: bytes.length }

let directory: string
let database: TestDatabase
let store: MediaStore
let spool: Spool
let library: Library

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hearth-move-'))
  database = await createTestDatabase()
  store = createDirectoryStore(join(directory, 'files'))
  spool = createSpool(join(directory, 'incoming'))
  library = createLibrary({ db: database.db, clock: Date, store, log: pino({ level: 'silent' }) })
})
afterAll(async () => {
  await database.drop()
  rmSync(directory, { recursive: true, force: true })
})

async function* once(): AsyncGenerator<Buffer> {
  yield bytes
}
const upload = async () => library.keep(await spool.take(once(), 1_000), async () => 'kept')
const isStored = async () => {
  const stream = await store.open(digest)
  stream?.destroy()
  return stream !== undefined
}

/** Whether somebody waits for a row that another transaction holds. */
async function isSomebodyWaiting(): Promise<boolean> {
  const [row] = await database.db.query<{ waiting: number }>(
    `SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  )
  return row!.waiting > 0
}

test('a copy of what nobody wants any more is removed, but not from under an upload of the same bytes', async () => {
  await store.put(await spool.take(once(), 1_000))
  let uploading: Promise<string> | undefined
  const meanwhile = {
    async remove(which: Buffer) {
      uploading = upload()
      await waitUntil('the upload waits', isSomebodyWaiting)
      await store.remove(which)
    },
  }
  expect(await removeUnknown(database.db, meanwhile, content)).toBe(true)
  expect(await uploading).toBe('kept')
  expect(await isStored()).toBe(true)
  // And what somebody has is not removed at all.
  expect(await removeUnknown(database.db, store, content)).toBe(false)
  expect(await isStored()).toBe(true)
})
