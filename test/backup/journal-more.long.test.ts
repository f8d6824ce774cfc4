import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { redo } from '../../src/store/backup/redo.ts'
import { type Undone, undoneSince } from '../../src/store/backup/undone.ts'
import { type CrossSigner, crossSigner, type DeviceMaker, deviceMaker } from '../keys/key-maker.ts'
import { type Account, type Api, createRoom, type Json, login, openApi, PASSWORD, register } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { type KeptServer, startKeptServer } from './kept-server.ts'

const enc = encodeURIComponent
const SECRETS = ['m.cross_signing.master', 'm.secret_storage.default_key', 'm.secret_storage.key.one']

let kept: KeptServer
let count = 0
const databases: TestDatabase[] = []
const restored: { readonly server: TestServer; readonly api: Api }[] = []

/** Brings a backup back, and starts a server on it. */
async function bringBack(place: string, words: readonly string[] = []) {
  const database = await createTestDatabase(true)
  const dataDir = `${kept.place}-data-${++count}`
  const env = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: dataDir, HEARTH__LISTEN__PORT: '1' }
  const back = await kept.run(['restore', place, ...words], env)
  expect(back, back.stderr).toMatchObject({ code: 0 })
  const server = await startServer({ server_name: 'kept.test' as never, data_dir: dataDir }, { database })
  const api = openApi(server.baseUrl)
  restored.push({ server, api })
  return { server, api, env, stdout: back.stdout }
}

beforeAll(async () => {
  kept = await startKeptServer()
}, 60_000)
afterAll(async () => {
  for (const { server, api } of restored) {
    await api.close()
    await server.close()
  }
  for (const database of databases) await database.drop()
  await kept.close()
})

const as = (admin: Account, method: string, path: string, body?: object): Promise<Json> =>
  kept.api.call(method, path, { token: admin.token, body })

const accountRow = (server: TestServer, userId: string): Promise<Json[]> =>
  server.database.db.query(
    `SELECT is_shadow_banned, awaits_approval, is_locked, valid_until FROM account JOIN matrix_user USING (user_nid) WHERE user_id = $1`,
    [userId],
  )

describe('what operators and users did after the backup is done again:', () => {
  let back: Awaited<ReturnType<typeof bringBack>>
  let admin: Account
  let people: Record<'banned' | 'waiting' | 'short' | 'free', Account>
  let maker: DeviceMaker
  let newer: CrossSigner
  let older: CrossSigner
  let blocked: string
  let unblocked: string
  let version: string
  const validUntil = Date.now() + 3_600_000

  const put = (type: string, content: object) =>
    kept.api.call('PUT', `/user/${enc(kept.alice.userId)}/account_data/${type}`, {
      token: kept.alice.token,
      body: content,
    })

  async function uploadKeys(signer: CrossSigner, secret: string): Promise<void> {
    const { token, userId } = kept.alice
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: userId }, password: PASSWORD }
    const uploaded = await kept.api.request('POST', '/keys/device_signing/upload', { token, body: signer.body() })
    if (uploaded.status === 401) {
      const body = { ...signer.body(), auth: { ...auth, session: (uploaded.body as Json).session } }
      await kept.api.call('POST', '/keys/device_signing/upload', { token, body })
    }
    const signed = signJson(maker.identity(), userId, signer.keys.self_signing)
    await kept.api.call('POST', '/keys/signatures/upload', {
      token,
      body: { [userId]: { [kept.alice.deviceId]: signed as JsonObject } },
    })
    await put('m.secret_storage.default_key', { key: 'one' })
    await put('m.secret_storage.key.one', { name: secret })
    await put('m.cross_signing.master', { encrypted: { one: { ciphertext: secret } } })
  }

  beforeAll(async () => {
    admin = await register(kept.api, 'admin')
    people = {
      banned: await register(kept.api, 'banned'),
      waiting: await register(kept.api, 'waiting'),
      short: await register(kept.api, 'short'),
      free: await register(kept.api, 'free'),
    }
    const set = (change: string, userId: string) =>
      kept.server.database.db.tx((tx) =>
        tx.query(
          `UPDATE account SET ${change} WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)`,
          [userId],
        ),
      )
    await set('is_admin = true', admin.userId)
    await set('awaits_approval = true, is_locked = true', people.waiting.userId)
    await as(admin, 'POST', `/_synapse/admin/v1/users/${enc(people.free.userId)}/shadow_ban`, {})
    blocked = await createRoom(kept.api, admin.token)
    unblocked = await createRoom(kept.api, admin.token)
    const block = (room: string, is: boolean) =>
      as(admin, 'PUT', `/_synapse/admin/v1/rooms/${enc(room)}/block`, { block: is })
    await block(unblocked, true)
    const { alice } = kept
    maker = deviceMaker(alice)
    await kept.api.call('POST', '/keys/upload', { token: alice.token, body: { device_keys: maker.identity() } })
    older = crossSigner(alice.userId)
    await uploadKeys(older, 'older')
    const made = await kept.api.call('POST', '/room_keys/version', {
      token: alice.token,
      body: { algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2', auth_data: { public_key: 'x', signatures: {} } },
    })
    version = made.version
    expect(await kept.run(['backup', kept.place])).toMatchObject({ code: 0 })

    await as(admin, 'POST', `/_synapse/admin/v1/users/${enc(people.banned.userId)}/shadow_ban`, {})
    await as(admin, 'DELETE', `/_synapse/admin/v1/users/${enc(people.free.userId)}/shadow_ban`)
    await as(admin, 'POST', `/_hearth/admin/v1/approvals/${enc(people.waiting.userId)}/approve`, {})
    const validity = { user_id: people.short.userId, expiration_ts: validUntil }
    await as(admin, 'POST', '/_synapse/admin/v1/account_validity/validity', validity)
    await block(blocked, true)
    await block(unblocked, false)
    newer = crossSigner(alice.userId)
    await uploadKeys(newer, 'newer')
    await kept.api.call('DELETE', `/room_keys/version/${version}`, { token: alice.token })
    expect(await kept.run(['backup', 'journal', kept.place])).toMatchObject({ code: 0 })
    back = await bringBack(kept.place)
  }, 60_000)

  test('shadow bans, approvals, and how long accounts are valid', async () => {
    const row = async (who: keyof typeof people) => (await accountRow(back.server, people[who].userId))[0]
    expect(await row('banned')).toMatchObject({ is_shadow_banned: true })
    expect(await row('free')).toMatchObject({ is_shadow_banned: false })
    expect(await row('waiting')).toMatchObject({ awaits_approval: false, is_locked: false })
    expect(await row('short')).toMatchObject({ valid_until: validUntil })
    expect((await back.api.request('GET', '/account/whoami', { token: people.waiting.token })).status).toBe(200)
  })

  test('rooms that were blocked, and those that were set free', async () => {
    const isBlocked = async (room: string) =>
      (await back.api.call('GET', `/_synapse/admin/v1/rooms/${enc(room)}/block`, { token: admin.token })).block
    expect([await isBlocked(blocked), await isBlocked(unblocked)]).toEqual([true, false])
  })

  test('cross-signing keys that a user reset, with what they signed and the secrets that belong to them', async () => {
    const { userId, deviceId, token } = kept.alice
    const found = await back.api.call('POST', '/keys/query', { token, body: { device_keys: { [userId]: [] } } })
    expect(found.master_keys[userId].keys).toEqual(newer.object('master').keys)
    expect(found.self_signing_keys[userId].keys).toEqual(newer.object('self_signing').keys)
    expect(found.user_signing_keys[userId].keys).toEqual(newer.object('user_signing').keys)
    const signers = Object.keys(found.device_keys[userId][deviceId].signatures[userId])
    expect(signers).toContain(newer.keys.self_signing.keyId)
    expect(signers).not.toContain(older.keys.self_signing.keyId)
    const stored = await Promise.all(
      SECRETS.map((type) => back.api.call('GET', `/user/${enc(userId)}/account_data/${type}`, { token })),
    )
    expect(stored).toEqual([{ encrypted: { one: { ciphertext: 'newer' } } }, { key: 'one' }, { name: 'newer' }])
    expect(JSON.stringify(stored)).not.toContain('older')
  })

  test('backups of keys that a user deleted', async () => {
    expect((await back.api.request('GET', '/room_keys/version', { token: kept.alice.token })).status).toBe(404)
  })

  test('and the restore says so', () => {
    expect(back.stdout).toContain('1 users given the cross-signing keys that they had last')
    expect(back.stdout).toContain('1 backups of keys removed')
    expect(back.stdout).toContain('2 rooms blocked or set free')
  })
})

test('whoever restores an older backup writes another journal, and the newer one comes back with all that ended', async () => {
  const place = `${kept.place}-older`
  const [first, second, third] = [
    await login(kept.api, 'alice'),
    await login(kept.api, 'alice'),
    await login(kept.api, 'alice'),
  ]
  expect(await kept.run(['backup', place, '--keep', ''])).toMatchObject({ code: 0 })
  expect(await kept.run(['backup', place, '--keep', ''])).toMatchObject({ code: 0 })
  const [older = '', newer = ''] = readdirSync(join(place, 'backups')).sort()
  await kept.api.call('POST', '/logout', { token: first.token })
  expect(await kept.run(['backup', 'journal', place])).toMatchObject({ code: 0 })
  // Another place, as what is restored writes there.
  const copy = `${place}-copy`
  cpSync(place, copy, { recursive: true })
  const back = await bringBack(copy, ['--id', older])
  await back.api.call('POST', '/logout', { token: second.token })
  expect(await kept.run(['backup', 'journal', copy], back.env)).toMatchObject({ code: 0 })
  const names = readdirSync(join(copy, 'journal')).sort()
  const ofNewer = names.filter((name) => name.startsWith(newer))
  expect(ofNewer).toHaveLength(2)
  expect(names).toEqual(expect.arrayContaining(readdirSync(join(place, 'journal'))))
  // It is written anew, not once more.
  expect(await kept.run(['backup', 'journal', copy], back.env)).toMatchObject({ code: 0 })
  expect(readdirSync(join(copy, 'journal')).sort()).toEqual(names)
  const [epoch] = await back.server.database.db.query<{ epoch: string }>('SELECT epoch FROM restore_epoch')
  const own = ofNewer.find((name) => name.includes(epoch!.epoch))!
  const [head = ''] = gunzipSync(readFileSync(join(copy, 'journal', own)))
    .toString()
    .split('\n')
  expect(JSON.parse(head).header).toMatchObject({ backup_id: newer, epoch: epoch!.epoch })

  const again = await bringBack(copy, ['--id', newer])
  const status = async ({ token }: Account) => (await again.api.request('GET', '/account/whoami', { token })).status
  expect([await status(first), await status(second), await status(third)]).toEqual([401, 401, 200])
}, 60_000)

test('a journal under the name of another is refused', async () => {
  const place = `${kept.place}-renamed`
  expect(await kept.run(['backup', place])).toMatchObject({ code: 0 })
  expect(await kept.run(['backup', 'journal', place])).toMatchObject({ code: 0 })
  const [name = ''] = readdirSync(join(place, 'journal'))
  cpSync(join(place, 'journal', name), join(place, 'journal', name.replace('.', '.abcd.')))
  const database = await createTestDatabase(true)
  databases.push(database)
  const env = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: `${kept.place}-x`, HEARTH__LISTEN__PORT: '1' }
  expect(await kept.run(['restore', place], env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it is of another backup'),
  })
}, 60_000)

test('what the release before noted, which knows less, is passed over', async () => {
  const database = await createTestDatabase()
  databases.push(database)
  const undone = [
    ['cross_signing', 1],
    ['block', '!room:kept.test'],
    [
      'account',
      1,
      {
        password_hash: null,
        deactivated_at: null,
        erased_at: null,
        erased_pos: null,
        is_locked: false,
        is_suspended: false,
        is_admin: false,
      },
    ],
  ] as unknown as Undone[]
  const by = { now: 1, eventPosition: 1 }
  expect(await database.db.tx((tx) => redo(tx, undone, by))).toMatchObject({ cross_signing: 0, block: 0, account: 0 })
})

test('an account whose data has a text that Postgres cannot hold keeps no journal from being written', async () => {
  const { userId, token } = await register(kept.api, 'escapes')
  const { db } = kept.server.database
  const path = `/user/${enc(userId)}/account_data/m.secret_storage.default_key`
  await kept.api.call('PUT', path, { token, body: { key: 'one\u0000' } })
  await db.tx((tx) =>
    tx.query(
      `INSERT INTO undone (at, kind, what)
       SELECT 1, 'cross_signing', json_build_array(user_nid)::text FROM matrix_user WHERE user_id = $1`,
      [userId],
    ),
  )
  expect((await undoneSince(db, 0, 1)).map(([kind]) => kind)).toEqual(['cross_signing'])
})

test('of several journals that tell of a room or a file, the newest counts', async () => {
  const database = await createTestDatabase()
  databases.push(database)
  const { db } = database
  const block = { blocked_by: '@admin:kept.test', blocked_at: 1 }
  const digest = Buffer.alloc(32, 7)
  await db.tx((tx) =>
    tx.query(
      'INSERT INTO media_content (digest, bytes, is_stored, is_loose, wanted_at) VALUES ($1, 1, true, false, 0)',
      [digest],
    ),
  )
  const undone: Undone[] = [
    ['block', '!blocked:kept.test', null],
    ['quarantine', digest.toString('hex'), null],
    ['block', '!freed:kept.test', block],
    ['block', '!blocked:kept.test', block],
    ['quarantine', digest.toString('hex'), '@admin:kept.test'],
    ['block', '!freed:kept.test', null],
  ]
  await db.tx((tx) => redo(tx, undone, { now: 1, eventPosition: 1 }))
  expect(await db.query('SELECT room_id FROM blocked_room')).toEqual([{ room_id: '!blocked:kept.test' }])
  expect(await db.query('SELECT quarantined_by FROM media_content')).toEqual([{ quarantined_by: '@admin:kept.test' }])
})
