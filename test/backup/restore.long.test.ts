import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Manifest, writeManifest } from '../../src/core/backup/manifest.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { sha256Of } from '../../src/domain/backup/backup-files.ts'
import { prove } from '../../src/domain/backup/proof.ts'
import { openRestoreTarget } from '../../src/store/backup/restore-target.ts'
import { readMigrations } from '../../src/store/db/migrate.ts'
import {
  type Account,
  type Api,
  type Json,
  login,
  openApi,
  type SyncQuery,
  sendText,
  syncPath,
} from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { fetchFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { FILE, type KeptServer, placeKey, startKeptServer } from './kept-server.ts'

/** A manifest as anybody can sign one. */
function signed(manifest: Manifest): string {
  const key = signingKeyFromSeed('ed25519:other', randomBytes(32))
  return writeManifest(manifest, sha256Of, (text) => prove('manifest', text, { mac: undefined, key }))
}

let kept: KeptServer
let targets: TestDatabase[] = []
let count = 0

/** An empty database and data directory, and what names them to a command. Nothing listens where it would. */
async function emptyTarget() {
  const database = await createTestDatabase(true)
  targets.push(database)
  const dataDir = `${kept.place}-data-${++count}`
  const env = { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: dataDir, HEARTH__LISTEN__PORT: '1' }
  return { database, dataDir, env }
}

async function isEmpty({ connection }: TestDatabase): Promise<boolean> {
  const target = await openRestoreTarget(connection)
  return (await target.state().finally(target.close)).kind === 'empty'
}

beforeAll(async () => {
  kept = await startKeptServer()
})
afterEach(async () => {
  for (const database of targets) await database.drop().catch(() => {})
  targets = []
})
afterAll(() => kept.close())

const sync = (api: Api, token: string, query: SyncQuery = {}): Promise<Json> =>
  api.call('GET', syncPath(query), { token })

const oneTimeKey = (name: string) => ({ [`curve25519:${name}`]: `key ${name}` })

async function claimed(api: Api, by: Account, of: Account): Promise<Json> {
  const body = { one_time_keys: { [of.userId]: { [of.deviceId]: 'curve25519' } } }
  const answer = await api.call('POST', '/keys/claim', { token: by.token, body })
  return answer.one_time_keys[of.userId]?.[of.deviceId]
}

describe('a server that was restored', () => {
  let restored: TestServer
  let api: Api
  /** From before the backup, and from after it. */
  let early: string
  let late: string
  let lostDevice: string
  let lostEvent: string

  beforeAll(async () => {
    const { alice, roomId, place, run } = kept
    const keys = { ...oneTimeKey('A'), ...oneTimeKey('B') }
    await kept.api.call('POST', '/keys/upload', { token: alice.token, body: { one_time_keys: keys } })
    early = (await sync(kept.api, alice.token)).next_batch
    await sendText(kept.api, alice.token, roomId, 'before', 'right before the backup')
    expect((await run(['backup', place])).code).toBe(0)
    expect(await claimed(kept.api, alice, alice)).toEqual(oneTimeKey('A'))
    lostEvent = await sendText(kept.api, alice.token, roomId, 'after', 'after the backup')
    late = (await sync(kept.api, alice.token)).next_batch
    lostDevice = (await login(kept.api, 'alice')).token
    const target = await emptyTarget()
    targets = []
    expect(await run(['restore', place], target.env)).toMatchObject({ code: 0 })
    restored = await startServer(
      { server_name: 'kept.test' as never, data_dir: target.dataDir },
      { database: target.database },
    )
    api = openApi(restored.baseUrl)
  })
  afterAll(async () => {
    await api.close()
    await restored.close()
  })

  test('has every event that was acknowledged before the backup, and its media', async () => {
    const { alice, roomId, mediaId } = kept
    const { chunk } = await api.call('GET', `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=100`, {
      token: alice.token,
    })
    const texts = chunk.flatMap(({ content }: Json) => content.body ?? [])
    const expected = Array.from({ length: 20 }, (_, count) => `text ${19 - count}\n\\ "é" ${'x'.repeat(19 - count)}`)
    expect(texts).toEqual(['right before the backup', ...expected])
    const file = await fetchFile(`${restored.baseUrl}/_matrix/client/v1/media/download/${mediaId}`, {
      token: alice.token,
    })
    expect(file.bytes).toEqual(FILE)
  })

  test('has every row of the backup, and passes the check of rooms', async () => {
    const { chunk } = await api.call('GET', '/publicRooms', { token: kept.alice.token })
    expect(chunk).toEqual([])
    const verified = await kept.run(['backup', 'verify', kept.place], {
      HEARTH__DATABASE__URL: restored.database.url,
      HEARTH__DATA_DIR: restored.config.data_dir,
    })
    expect(verified.stdout).toContain('All of it is right.')
    expect(verified.code).toBe(0)
  })

  test('goes on after a sync token of before the backup', async () => {
    const { alice, roomId } = kept
    const { rooms } = await sync(api, alice.token, { since: early })
    const { timeline } = rooms.join[roomId]
    expect(timeline.events.map(({ content }: Json) => content.body)).toEqual(['right before the backup'])
    expect(timeline.limited).toBe(false)
  })

  test('lets a client begin anew whose token is of after it', async () => {
    const { alice, roomId } = kept
    const { rooms, next_batch, account_data } = await sync(api, alice.token, { since: late })
    const { timeline, state } = rooms.join[roomId]
    expect(timeline.limited).toBe(true)
    expect(timeline.events.map(({ event_id }: Json) => event_id)).not.toContain(lostEvent)
    expect([...state.events, ...timeline.events].map(({ type }: Json) => type)).toContain('m.room.create')
    expect(account_data.events.map(({ type }: Json) => type)).toContain('m.push_rules')
    const sent = await sendText(api, alice.token, roomId, 'new', 'after the restore')
    const next = await sync(api, alice.token, { since: next_batch })
    expect(next.rooms.join[roomId].timeline.events.map(({ event_id }: Json) => event_id)).toEqual([sent])
    expect(next.rooms.join[roomId].timeline.limited).toBe(false)
    // Paging from a lost token is answered, and key changes since it too.
    const path = `/rooms/${encodeURIComponent(roomId)}/messages?dir=b&limit=1&from=${late}`
    expect((await api.call('GET', path, { token: alice.token })).chunk).toHaveLength(1)
    await api.call('GET', `/keys/changes?from=${late}&to=${next_batch}`, { token: alice.token })
  })

  test('gives out no one-time key that may have been given out, also when it is uploaded again', async () => {
    const { alice } = kept
    expect((await sync(api, alice.token)).device_one_time_keys_count.curve25519 ?? 0).toBe(0)
    expect(await claimed(api, alice, alice)).toBeUndefined()
    const body = { one_time_keys: { ...oneTimeKey('A'), ...oneTimeKey('B'), ...oneTimeKey('C') } }
    await api.call('POST', '/keys/upload', { token: alice.token, body })
    expect(await claimed(api, alice, alice)).toEqual(oneTimeKey('C'))
    expect(await claimed(api, alice, alice)).toBeUndefined()
  })

  test('tells a client whose session is lost that it may keep its keys', async () => {
    const { status, body } = await api.request('GET', '/account/whoami', { token: lostDevice })
    expect([status, body.errcode, body.soft_logout]).toEqual([401, 'M_UNKNOWN_TOKEN', true])
  })

  test('uses no number of before again', async () => {
    const [old] = await kept.server.database.db.query<{ last: number }>('SELECT max(event_nid) AS last FROM event')
    const [fresh] = await restored.database.db.query<{ last: number }>('SELECT max(event_nid) AS last FROM event')
    expect(fresh!.last).toBeGreaterThan(old!.last + 1_000_000)
    const position = async (server: TestServer) =>
      (await server.database.db.query<{ position: number }>('SELECT position FROM ledger'))[0]!.position
    expect(await position(restored)).toBeGreaterThan((await position(kept.server)) + 1_000_000)
  })

  test('can be backed up and restored itself, and knows its tokens and those of before', async () => {
    const { alice, roomId } = kept
    const place = `${kept.place}-second`
    const own = { HEARTH__DATABASE__URL: restored.database.url, HEARTH__DATA_DIR: restored.config.data_dir }
    const between = (await sync(api, alice.token)).next_batch
    expect((await kept.run(['backup', place], own)).code).toBe(0)
    await sendText(api, alice.token, roomId, 'lost again', 'lost again')
    const lost = (await sync(api, alice.token)).next_batch
    const target = await emptyTarget()
    targets = []
    expect((await kept.run(['restore', place], target.env)).code).toBe(0)
    const again = await startServer(
      { server_name: 'kept.test' as never, data_dir: target.dataDir },
      { database: target.database },
    )
    const other = openApi(again.baseUrl)
    const isAnew = async (since: string) =>
      (await sync(other, alice.token, { since })).rooms?.join?.[roomId]?.timeline.limited === true
    expect([await isAnew(early), await isAnew(between)]).toEqual([false, false])
    expect([await isAnew(late), await isAnew(lost)]).toEqual([true, true])
    await other.close()
    await again.close()
  })
})

describe('hearth restore refuses, before it writes,', () => {
  const place = () => `${kept.place}-refused`
  beforeAll(async () => {
    expect((await kept.run(['backup', place()])).code).toBe(0)
  })

  test('a database that a server uses, and one that is not empty', async () => {
    const inUse = await kept.run(['restore', place()])
    expect(inUse).toMatchObject({ code: 1, stderr: expect.stringContaining('a server is running on this database') })
    const database = await createTestDatabase()
    targets.push(database)
    const { env } = await emptyTarget()
    const used = await kept.run(['restore', place()], { ...env, HEARTH__DATABASE__URL: database.url })
    expect(used).toMatchObject({ code: 1, stderr: expect.stringContaining('the database is not empty') })
  })

  test('while a server of this name answers, unless asked to', async () => {
    const { database, env } = await emptyTarget()
    const port = new URL(kept.server.baseUrl).port
    const words = ['restore', place(), '--set', `listen.port=${port}`]
    expect((await kept.run(words, env)).stderr).toContain('a server named kept.test is running')
    expect(await isEmpty(database)).toBe(true)
    expect(await kept.run([...words, '--even-if-running'], env)).toMatchObject({ code: 0 })
  })

  test('the backup of another server', async () => {
    const { database, env } = await emptyTarget()
    const { stderr } = await kept.run(['restore', place()], { ...env, HEARTH__SERVER_NAME: 'other.test' })
    expect(stderr).toContain('the backup is of kept.test, but server_name is other.test')
    expect(await isEmpty(database)).toBe(true)
  })

  test('a data directory with another signing key', async () => {
    const { database, dataDir, env } = await emptyTarget()
    expect((await kept.run(['keys', 'show'], env)).code).toBe(0)
    expect((await kept.run(['restore', place()], env)).stderr).toContain('is no key of this server')
    const { stderr } = await kept.run(['restore', place(), '--signed-by', kept.publicKey], env)
    expect(stderr).toContain(`${join(dataDir, 'signing.key')} is another key`)
    expect(await isEmpty(database)).toBe(true)
  })

  const damages: [string, (manifest: Manifest) => Manifest | undefined, RegExp][] = [
    [
      'a truncated backup',
      ({ database }) => {
        const [{ files } = { files: [] }] = database.tables.filter(({ name }) => name === 'event')
        truncateSync(join(place(), files[0]!.name), 100)
        return undefined
      },
      /event\.00001\.gz has 100 bytes instead of/,
    ],
    [
      'a backup without one of its media',
      ({ media }) => {
        for (const name of readdirSync(join(place(), 'media', media.set)))
          rmSync(join(place(), 'media', media.set, name), { recursive: true })
        return undefined
      },
      /media\/plain\/.* is missing/,
    ],
    [
      'a backup of a release that is too new',
      (manifest) => {
        const next = { name: '9998_later.sql', checksum: 'new' }
        const migrations = [...manifest.database.migrations, next]
        return { ...manifest, release: '9.0.0', database: { ...manifest.database, migrations } }
      },
      /Hearth 9\.0\.0 made the backup, and this one does not know its database \(9998_later\.sql\)/,
    ],
  ]
  test.each(damages)('%s', async (_name, damage, message) => {
    rmSync(place(), { recursive: true, force: true })
    expect((await kept.run(['backup', place()])).code).toBe(0)
    const [id = ''] = readdirSync(join(place(), 'backups'))
    const path = join(place(), 'backups', id, 'manifest.json')
    const changed = damage(JSON.parse(readFileSync(path, 'utf8')))
    if (changed) writeFileSync(path, signed(changed))
    const { database, env } = await emptyTarget()
    const { code, stdout, stderr } = await kept.run(['restore', place()], env)
    expect(code).toBe(1)
    expect(stdout + stderr).toMatch(message)
    expect(await isEmpty(database)).toBe(true)
  })

  test('a backup whose passphrase is another', async () => {
    const secret = `${kept.place}-locked`
    const passphrase = { HEARTH__BACKUP__PASSPHRASE: 'correct horse' }
    await placeKey(secret, passphrase.HEARTH__BACKUP__PASSPHRASE)
    expect((await kept.run(['backup', secret], passphrase)).code).toBe(0)
    const { database, dataDir, env } = await emptyTarget()
    const wrong = await kept.run(['restore', secret, '--passphrase'], env, 'correct mule\n')
    expect(wrong.stderr).toContain('the passphrase is not that of the backups')
    expect([await isEmpty(database), existsSync(dataDir)]).toEqual([true, false])
    expect(await kept.run(['restore', secret], { ...env, ...passphrase })).toMatchObject({ code: 0 })
  })
})

test('a restore that was cut off goes on, or begins anew with another backup, and no server starts on half of it', async () => {
  const place = `${kept.place}-cut`
  expect((await kept.run(['backup', place])).code).toBe(0)
  const { database, env } = await emptyTarget()
  const target = await openRestoreTarget(database.connection)
  const all = (await readMigrations('migrations')).map(({ name }) => name)
  await target.begin('20200101T000000000Z', 'migrations', new Set(all))
  await target.close()
  const half = { server_name: 'kept.test' as never }
  await expect(startServer(half, { database })).rejects.toThrow(
    'This database cannot be used: a backup is being brought back',
  )
  expect((await kept.run(['user', 'list'], env)).stderr).toContain('Finish it with `hearth restore`')
  const done = await kept.run(['restore', place], env)
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('What is there of it is removed') })
})

test('one damaged medium does not keep all the rest of a backup away, encrypted or not', async () => {
  const secret = await generateX25519Identity()
  const key = join(kept.place, '..', 'reader.key')
  writeFileSync(key, secret)
  for (const options of [[], ['--recipient', await identityToRecipient(secret)]]) {
    const place = `${kept.place}-rotten-${options.length}`
    expect((await kept.run(['backup', place, ...options])).code).toBe(0)
    const [name = ''] = (readdirSync(join(place, 'media'), { recursive: true }) as string[]).filter((path) =>
      /[0-9a-f]{64}$/.test(path),
    )
    const bytes = readFileSync(join(place, 'media', name))
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(join(place, 'media', name), bytes)
    const { env } = await emptyTarget()
    const opening = options.length === 0 ? [] : ['--identity-file', key, '--signed-by', kept.publicKey]
    const { code, stdout, stderr } = await kept.run(['restore', place, ...opening], env)
    expect([code, stderr]).toEqual([0, expect.stringContaining('1 media files are damaged in the backup')])
    expect(stdout).toContain('is back')
    expect(stderr).toContain(name)
  }
})

test('a restore fills no tables but those of the migrations: not its own list of statements, and no catalog', async () => {
  const { database } = await emptyTarget()
  const target = await openRestoreTarget(database.connection)
  await target.begin('20200101T000000000Z', 'migrations', new Set(['0001_accounts.sql']))
  const statement = Buffer.from('999999\tCREATE TABLE planted ()\n')
  const planted = { name: 'restore_index', columns: ['ordinal', 'sql'], rows: 1, files: [] }
  await expect(target.load(planted, 'planted', statement)).rejects.toThrow(
    '"restore_index", which is no table of Hearth',
  )
  for (const name of ['schema_migration', 'restore_file', 'pg_authid']) {
    await expect(target.load({ ...planted, name }, 'planted', statement)).rejects.toThrow('no table of Hearth')
  }
  expect((await target.indexes()).map(({ ordinal }) => ordinal)).not.toContain(999_999)
  await target.close()
})
