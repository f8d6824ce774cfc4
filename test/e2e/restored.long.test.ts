import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MatrixClient } from 'matrix-js-sdk'
import { afterAll, expect, test } from 'vitest'
import { loadSigningKey } from '../../src/cli/serve/signing-key-file.ts'
import { createRoom, login, openApi, register, sendText } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { startServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { startClient } from './js-sdk-story.ts'

const directory = mkdtempSync(join(tmpdir(), 'hearth-restored-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('a client of matrix-js-sdk goes on over a restore, though its token is of after the backup', async () => {
  const place = join(directory, 'backups')
  const first = await startServer()
  const port = Number(new URL(first.baseUrl).port)
  const env = (url: string, dataDir: string) => ({
    HEARTH__DATABASE__URL: url,
    HEARTH__DATA_DIR: dataDir,
    HEARTH__LISTEN__PORT: '1',
  })
  const api = openApi(first.baseUrl)
  await register(api, 'alice')
  const { token } = await login(api, 'alice')
  const roomId = await createRoom(api, token)
  await sendText(api, token, roomId, 'before', 'before the backup')
  const client: MatrixClient = await startClient(first.baseUrl, fetch, 'alice', 20)
  mkdirSync(first.config.data_dir, { recursive: true })
  await loadSigningKey(first.config.data_dir)
  const backup = await runProgramHere(['backup', place], {
    directory,
    env: env(first.database.url, first.config.data_dir),
  })
  expect(backup).toMatchObject({ code: 0 })
  // Its session is of after the backup otherwise: a client that is lost with it logs in again.
  await sendText(api, token, roomId, 'lost', 'after the backup')
  const texts = () =>
    (client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? []).flatMap((event) => event.getContent().body ?? [])
  await waitUntil('the message that will be lost', () => texts().includes('after the backup'))
  await api.close()
  await first.close()
  const database = await createTestDatabase(true)
  const dataDir = join(directory, 'data')
  const restored = await runProgramHere(['restore', place], { directory, env: env(database.url, dataDir) })
  expect(restored, restored.stderr).toMatchObject({ code: 0 })
  const second = await startServer({ data_dir: dataDir, listen: { port } }, { database })
  const again = openApi(second.baseUrl)
  try {
    await waitUntil('a clean start', () => !texts().includes('after the backup'), { timeoutMs: 60_000 })
    await client.scrollback(client.getRoom(roomId)!, 20)
    expect(texts()).toEqual(['before the backup'])
    await sendText(again, token, roomId, 'new', 'after the restore')
    await waitUntil('the new message', () => texts().includes('after the restore'))
    expect(texts().filter((text) => text === 'after the restore')).toHaveLength(1)
    await client.sendTextMessage(roomId, 'from the client')
    await waitUntil('its own message', () => texts().includes('from the client'))
  } finally {
    client.stopClient()
    await again.close()
    await second.close()
  }
}, 120_000)
