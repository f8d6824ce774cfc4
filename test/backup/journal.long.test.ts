import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readJournal } from '../../src/core/backup/journal.ts'
import { backupId } from '../../src/core/backup/manifest.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { manifestName, sha256Of } from '../../src/domain/backup/backup-files.ts'
import { once } from '../../src/domain/backup/chunks.ts'
import { createDirectoryBackups } from '../../src/domain/backup/directory-backups.ts'
import { writeNewestJournal } from '../../src/domain/backup/journals.ts'
import { PLAIN } from '../../src/domain/backup/seal.ts'
import { forgetUndone, undoneSince } from '../../src/store/backup/undone.ts'
import {
  type Account,
  type Api,
  createRoom,
  join as joinRoom,
  login,
  openApi,
  PASSWORD,
  register,
  sendText,
} from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { fetchFile, uploadFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

let kept: KeptServer
let restored: TestServer
let api: Api
let admin: Account
let second: Account
let bob: Account
let redacted: string
let stays: string
let deleted: string
let purgedRoom: string
let lastBeforePurge: string
let deletedRoom: string
let count = 0
const databases: TestDatabase[] = []

const enc = encodeURIComponent
const withPassword = (user: string, password = PASSWORD) => ({
  auth: { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password },
})

async function emptyTarget() {
  const database = await createTestDatabase(true)
  databases.push(database)
  const dataDir = `${kept.place}-data-${++count}`
  const env = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: dataDir, HEARTH__LISTEN__PORT: '1' }
  return { database, dataDir, env }
}

function journals(place: string): string[] {
  const folder = join(place, 'journal')
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

beforeAll(async () => {
  kept = await startKeptServer()
  const { place, run, alice, roomId } = kept
  admin = await register(kept.api, 'admin')
  await kept.server.database.db.tx((tx) =>
    tx.query(
      'UPDATE account SET is_admin = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
      [admin.userId],
    ),
  )
  bob = await register(kept.api, 'bob')
  await joinRoom(kept.api, bob.token, roomId)
  second = await login(kept.api, 'alice')
  redacted = await sendText(kept.api, alice.token, roomId, 'to be redacted', 'a secret')
  stays = await sendText(kept.api, alice.token, roomId, 'stays', 'no secret')
  deleted = await uploadFile(kept.server.baseUrl, alice.token, Buffer.from('a picture to be deleted'), {})
  purgedRoom = await createRoom(kept.api, admin.token)
  await sendText(kept.api, admin.token, purgedRoom, 'old', 'old news')
  lastBeforePurge = await sendText(kept.api, admin.token, purgedRoom, 'newer', 'newer news')
  deletedRoom = await createRoom(kept.api, admin.token, { invite: [alice.userId] })
  expect(await run(['backup', place])).toMatchObject({ code: 0 })

  await kept.api.call('POST', '/logout', { token: second.token })
  const change = { ...withPassword('alice'), new_password: 'another horse battery', logout_devices: false }
  await kept.api.call('POST', '/account/password', { token: alice.token, body: change })
  const erase = { ...withPassword('bob'), erase: true }
  await kept.api.call('POST', '/account/deactivate', { token: bob.token, body: erase })
  await kept.api.call('PUT', `/rooms/${enc(roomId)}/redact/${enc(redacted)}/r1`, { token: alice.token, body: {} })
  const as = { token: admin.token }
  await kept.api.call('DELETE', `/_synapse/admin/v1/media/${deleted}`, as)
  const purge = { body: { purge_up_to_event_id: lastBeforePurge, delete_local_events: true }, ...as }
  await kept.api.call('POST', `/_synapse/admin/v1/purge_history/${enc(purgedRoom)}`, purge)
  await kept.api.call('DELETE', `/_synapse/admin/v2/rooms/${enc(deletedRoom)}`, { body: { purge: true }, ...as })
  const noted = await run(['backup', 'journal', place])
  expect(noted).toMatchObject({ code: 0, stdout: expect.stringMatching(/Beside the backup \S+: \d+ things/) })

  const target = await emptyTarget()
  databases.pop()
  const back = await run(['restore', place], target.env)
  expect(back).toMatchObject({ code: 0, stdout: expect.stringContaining('1 messages redacted') })
  restored = await startServer(
    { server_name: 'kept.test' as never, data_dir: target.dataDir },
    { database: target.database },
  )
  api = openApi(restored.baseUrl)
})
afterAll(async () => {
  await api?.close()
  await restored?.close()
  for (const database of databases) await database.drop()
  await kept.close()
})

describe('what ended after the backup ends again:', () => {
  test('a session that was logged out, and its device; others go on', async () => {
    expect((await api.request('GET', '/account/whoami', { token: second.token })).status).toBe(401)
    const { devices } = await api.call('GET', '/devices', { token: kept.alice.token })
    expect(devices.map(({ device_id }: { device_id: string }) => device_id)).toEqual([kept.alice.deviceId])
  })

  test('a password that was changed', async () => {
    await expect(login(api, 'alice')).rejects.toThrow('M_FORBIDDEN')
    await login(api, 'alice', 'another horse battery')
  })

  test('an account that was deactivated and erased, which leaves its rooms', async () => {
    await expect(login(api, 'bob')).rejects.toThrow(/M_FORBIDDEN|M_USER_DEACTIVATED/)
    expect((await api.request('GET', '/account/whoami', { token: bob.token })).status).toBe(401)
    await waitUntil('he has left', async () => {
      const { joined } = await api.call('GET', `/rooms/${enc(kept.roomId)}/joined_members`, { token: kept.alice.token })
      return !(bob.userId in joined)
    })
    const [row] = await restored.database.db.query<{ erased: boolean }>(
      'SELECT erased_at IS NOT NULL AS erased FROM account JOIN matrix_user USING (user_nid) WHERE user_id = $1',
      [bob.userId],
    )
    expect(row).toEqual({ erased: true })
  })

  test('a message that was redacted, and no other', async () => {
    const { token } = kept.alice
    const read = (id: string) => api.call('GET', `/rooms/${enc(kept.roomId)}/event/${enc(id)}`, { token })
    expect((await read(redacted)).content).toEqual({})
    expect((await read(stays)).content.body).toBe('no secret')
    const [row] = await restored.database.db.query<{ found: number }>(
      `SELECT count(*) AS found FROM event WHERE json LIKE '%a secret%'`,
    )
    expect(row!.found).toBe(0)
  })

  test('media that were deleted, and no others', async () => {
    const get = (id: string) =>
      fetchFile(`${restored.baseUrl}/_matrix/client/v1/media/download/${id}`, { token: kept.alice.token })
    expect((await get(deleted)).status).toBe(404)
    expect((await get(kept.mediaId)).status).toBe(200)
  })

  test('history that was removed, and a room that was deleted', async () => {
    const rows = () =>
      restored.database.db.query<{ events: number; rooms: number }>(
        `SELECT (SELECT count(*) FROM event WHERE json LIKE '%old news%') AS events,
           (SELECT count(*) FROM room WHERE room_id = $1) AS rooms`,
        [deletedRoom],
      )
    await waitUntil('both are gone', async () => {
      const [row] = await rows()
      return row!.events === 0 && row!.rooms === 0
    })
    // What is sent from now on stays.
    await sendText(api, admin.token, purgedRoom, 'after', 'after the restore')
    const { chunk } = await api.call('GET', `/rooms/${enc(purgedRoom)}/messages?dir=b&limit=5`, { token: admin.token })
    expect(chunk[0].content.body).toBe('after the restore')
  })
})

test('a later backup has a journal of its own, and an older one is restored with both', async () => {
  const place = `${kept.place}-two`
  const [third, fourth] = [await login(kept.api, 'admin'), await login(kept.api, 'admin')]
  expect(await kept.run(['backup', place, '--keep', ''])).toMatchObject({ code: 0 })
  const [first = ''] = readdirSync(join(place, 'backups'))
  await kept.api.call('POST', '/logout', { token: third.token })
  // It completes the journal of the first.
  expect(await kept.run(['backup', place, '--keep', ''])).toMatchObject({ code: 0 })
  await kept.api.call('POST', '/logout', { token: fourth.token })
  expect(await kept.run(['backup', 'journal', place])).toMatchObject({ code: 0 })
  expect(journals(place)).toHaveLength(2)
  const { database, env } = await emptyTarget()
  const { stdout } = await kept.run(['restore', place, '--id', first], env)
  expect(stdout).toContain('2 devices removed')
  const [row] = await database.db.query<{ sessions: number }>(
    `SELECT count(*) AS sessions FROM device WHERE device_id = ANY($1::text[])`,
    [[third.deviceId, fourth.deviceId]],
  )
  expect(row!.sessions).toBe(0)
  // Notes are made again from now on.
  const [noting] = await database.db.query<{ off: number }>(
    `SELECT count(*) AS off FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'`,
  )
  expect(noting!.off).toBe(0)
  // Journals go with the last backup that needs them.
  expect(await kept.run(['backup', place, '--keep', '1d'])).toMatchObject({ code: 0 })
  expect(journals(place).filter((name) => name.startsWith(first))).toEqual([])
})

test('a journal that was altered or put there is refused, and the backup comes back without it only when that is said', async () => {
  const place = `${kept.place}-forged`
  expect(await kept.run(['backup', place])).toMatchObject({ code: 0 })
  const session = await login(kept.api, 'admin')
  await kept.api.call('POST', '/logout', { token: session.token })
  expect(await kept.run(['backup', 'journal', place])).toMatchObject({ code: 0 })
  const path = join(place, 'journal', journals(place)[0]!)
  const [head = '', ...lines] = gunzipSync(readFileSync(path)).toString().split('\n')
  writeFileSync(path, gzipSync([head, '["account",1,{}]', ...lines].join('\n')))
  const { env } = await emptyTarget()
  const refused = await kept.run(['restore', place], env)
  expect(refused.stderr).toMatch(/the journal .* cannot be used: it was altered or damaged. With --without-journal/)
  writeFileSync(path, gzipSync([head.replace(/"to":\d+/, '"to":1'), ...lines].join('\n')))
  expect((await kept.run(['restore', place], env)).stderr).toContain('it was altered after it had been made')
  writeFileSync(path, 'nothing of the kind')
  expect((await kept.run(['restore', place], env)).code).toBe(1)
  const without = await kept.run(['restore', place, '--without-journal'], env)
  expect(without, without.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('There is no journal') })
})

test('notes in the database are bounded by age and number', async () => {
  const database = await createTestDatabase()
  databases.push(database)
  const { db } = database
  await db.tx((tx) =>
    tx.query(
      `INSERT INTO undone (at, kind, what) SELECT n, 'session', json_build_array(n, 1)::text FROM generate_series(1, 100) AS n`,
    ),
  )
  expect(await db.tx((tx) => forgetUndone(tx, 11, 1_000, 1_000))).toBe(10)
  expect(await db.tx((tx) => forgetUndone(tx, 0, 30, 1_000))).toBe(60)
  expect((await undoneSince(db, 0, 5)).map(([, nid]) => nid)).toEqual([100, 99, 98, 97, 96])
})

test('a journal holds the newest that a restore can read, and says that there was more', async () => {
  const database = await createTestDatabase()
  databases.push(database)
  const { db } = database
  const place = `${kept.place}-much`
  const store = createDirectoryBackups(place)
  await store.write(manifestName(backupId(1_000_000)), once(Buffer.from('{}')))
  await db.tx((tx) =>
    tx.query(
      `INSERT INTO undone (at, kind, what) SELECT 1000000, 'session', json_build_array(n, 1)::text FROM generate_series(100, 199) AS n`,
    ),
  )
  const signingKey = signingKeyFromSeed('ed25519:1', Buffer.alloc(32, 1))
  const parts = { store, seal: PLAIN, signingKey, serverName: 'kept.test', release: '1', clock: Date, db }
  expect(await writeNewestJournal(parts)).toMatchObject({ entries: 100 })
  // Lines such as ["session",199,1].
  expect(await writeNewestJournal(parts, 10 * 18)).toMatchObject({ entries: 10 })
  const text = gunzipSync(readFileSync(join(place, 'journal', journals(place)[0]!))).toString()
  const { header, entries } = readJournal<[string, number]>(text, sha256Of)
  expect(header.is_cut).toBe(true)
  expect(entries.map(([, nid]) => nid)).toEqual(Array.from({ length: 10 }, (_, at) => 199 - at))
})
