import { type AddressInfo, createServer } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import { atPace, startPace } from '../../src/domain/backup/pace.ts'
import { BACKUP_FIRST_BYTES_PER_SECOND } from '../../src/domain/limits/backups.ts'
import { openWaits } from '../../src/store/backup/waits.ts'
import { startServer } from '../support/server.ts'

const server = await startServer()
afterAll(() => server.close())

test('how long others wait is measured at the database and the server', async () => {
  const waits = openWaits(server.database.connection, server.baseUrl)
  expect(await waits.measure()).toBeGreaterThan(0)
  expect(await waits.measure()).toBeGreaterThan(0)
  await waits.close()
  expect(await waits.measure()).toBeUndefined()
})

test('where no server answers the database counts alone, and without one nothing is known', async () => {
  const alone = openWaits(server.database.connection, 'http://127.0.0.1:1')
  expect(await alone.measure()).toBeGreaterThan(0)
  await alone.close()
  const nowhere = openWaits({ host: '127.0.0.1', port: 1 }, server.baseUrl)
  expect(await nowhere.measure()).toBeUndefined()
  await nowhere.close()
})

test('a backup takes its bytes at its rate, all of them and in their order, and goes on at full speed once it is stopped', async () => {
  const chunks = Array.from({ length: 8 }, (_, at) => Buffer.alloc(BACKUP_FIRST_BYTES_PER_SECOND / 16, at))
  async function* source() {
    yield* chunks
  }
  const pace = startPace(async () => undefined)
  const begun = performance.now()
  const read: Buffer[] = []
  for await (const chunk of atPace(pace, source())) read.push(chunk)
  // Half a second's worth, of which a quarter may be caught up with.
  expect(performance.now() - begun).toBeGreaterThan(200)
  expect(read.length === chunks.length && read.every((chunk, at) => chunk === chunks[at])).toBe(true)
  pace.stop()
  await pace.take(BACKUP_FIRST_BYTES_PER_SECOND * 3_600)
})

test('a database that hangs counts as slow, and holds nothing up', async () => {
  const silent = createServer()
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo
  const waits = openWaits({ host: '127.0.0.1', port }, server.baseUrl)
  expect(await waits.measure()).toBe(5_000)
  await waits.close()
  silent.close()
})
