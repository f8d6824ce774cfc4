import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Manifest } from '../../src/core/backup/manifest.ts'
import { lastBackup } from '../../src/store/backup/backup-runs.ts'
import { sendText } from '../support/api.ts'
import { uploadFile } from '../support/media.ts'
import { S3_KEYS, startS3Service } from '../support/s3-service.ts'
import { filesIn as files, manifestIn } from './files.ts'
import { FILE, type KeptServer, startKeptServer } from './kept-server.ts'

let kept: KeptServer

beforeAll(async () => {
  kept = await startKeptServer()
})
afterAll(() => kept.close())

describe('hearth backup', () => {
  test('holds every row of one moment while others write, the media and the settings, and reads back', async () => {
    const { server, api, alice, roomId, place, run } = kept
    let isOver = false
    const writing = (async () => {
      for (let count = 0; !isOver; count++) await sendText(api, alice.token, roomId, `m${count}`, `meanwhile ${count}`)
    })()
    const [{ count: before }] = (await server.database.db.query<{ count: number }>('SELECT count(*) FROM event')) as [
      { count: number },
    ]
    const made = await run(['backup', place])
    isOver = true
    await writing
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('not encrypted') })
    const { manifest } = manifestIn(place)
    const rows = (name: string) => manifest.database.tables.find((table) => table.name === name)?.rows ?? 0
    const [{ count: after }] = (await server.database.db.query<{ count: number }>('SELECT count(*) FROM event')) as [
      { count: number },
    ]
    expect(rows('event')).toBeGreaterThanOrEqual(before)
    expect(rows('event')).toBeLessThan(after)
    // One moment: each event of the stream is in, and none after.
    const [{ count: upTo }] = (await server.database.db.query<{ count: number }>(
      'SELECT count(*) FROM event WHERE event_nid <= $1',
      [manifest.database.event_position],
    )) as [{ count: number }]
    expect(rows('event')).toBe(upTo)
    expect(manifest.media).toMatchObject({ files: 1, bytes: FILE.length, missing: [] })
    const verified = await run(['backup', 'verify', place])
    expect(verified.stdout).toContain('All of it is as it was written.')
    expect(verified.stdout).toContain('All of it is right.')
    expect(verified.code).toBe(0)
    expect((await run(['backup', 'list', place])).stdout).toMatch(/kept\.test/)
    expect(await server.metrics()).toMatch(/hearth_last_backup_timestamp_seconds 1\d{9}/)
  })

  test('copies only media that are not there yet', async () => {
    const { place, run } = kept
    const [one] = files(join(place, 'media'))
    const { ino, mtimeMs } = statSync(one!)
    expect((await run(['backup', place])).code).toBe(0)
    expect(files(join(place, 'media'))).toEqual([one])
    expect(statSync(one!)).toMatchObject({ ino, mtimeMs })
  })

  test('keeps what the rule keeps, and removes backups, halves and media that nothing needs', async () => {
    const { place, run } = kept
    const half = join(place, 'backups/20200101T000000000Z/db/event.00001.gz')
    mkdirSync(join(half, '..'), { recursive: true })
    writeFileSync(half, 'half')
    const loose = join(place, 'media/plain/ab/abcd')
    mkdirSync(join(loose, '..'), { recursive: true })
    writeFileSync(loose, 'loose')
    const made = await run(['backup', place, '--keep', '1d'])
    expect(made.code).toBe(0)
    expect(JSON.parse((await run(['backup', 'list', place, '--json'])).stdout)).toHaveLength(1)
    expect(files(place).filter((name) => name === half || name === loose)).toEqual([])
    expect((await run(['backup', 'verify', place])).code).toBe(0)
  })

  test('is noted also where an older one is damaged, and says what could not be removed', async () => {
    const { place, run, server } = kept
    const damaged = join(place, 'backups/20200102T000000000Z/manifest.json')
    const half = join(place, 'backups/20200101T000000000Z/db/event.00001.gz')
    for (const path of [damaged, half]) {
      mkdirSync(join(path, '..'), { recursive: true })
      writeFileSync(path, '{"format":1}')
    }
    const before = await lastBackup(server.database.db)
    const { code, stdout, stderr } = await run(['backup', place, '--keep', ''])
    expect(code).toBe(1)
    expect(stdout).toContain('Backup ')
    expect(stderr).toContain('the new backup is whole, but what is not kept could not be removed: the backup 20200102')
    expect((await lastBackup(server.database.db))!.ended_at).toBeGreaterThan(before!.ended_at)
    const listed = await run(['backup', 'list', place])
    expect(listed.stdout).toContain((await lastBackup(server.database.db))!.backup_id)
    expect([listed.code, listed.stderr]).toEqual([1, expect.stringContaining('the backup 20200102')])
    rmSync(join(damaged, '..'), { recursive: true })
  })

  test('refuses a place of other things, of another server, and one with a newer backup, before it writes', async () => {
    const { place, run } = kept
    const other = `${place}-other`
    mkdirSync(other)
    writeFileSync(join(other, 'letter.txt'), 'mine')
    expect((await run(['backup', other])).stderr).toContain('holds other things than backups')
    expect(files(other)).toEqual([join(other, 'letter.txt')])
    const before = files(place)
    const mark = join(place, 'hearth-backups.json')
    const text = readFileSync(mark, 'utf8')
    writeFileSync(mark, '{"server_name":"other.test"}')
    expect((await run(['backup', place])).stderr).toContain('holds backups of other.test')
    writeFileSync(mark, text)
    const folder = join(manifestIn(place).path, '..')
    const later = join(place, 'backups/29991231T000000000Z')
    renameSync(folder, later)
    expect((await run(['backup', place])).stderr).toContain('already holds a newer backup')
    renameSync(later, folder)
    expect(files(place)).toEqual(before)
  })

  test('is made once at a time, up to its end', async () => {
    const { place, run, server } = kept
    const whole = files(place)
    const media = files(join(server.config.data_dir, 'media')).find((path) => readFileSync(path).equals(FILE))!
    // The first backup of another place waits for this file, when it is done with the database.
    renameSync(media, `${media}.away`)
    execFileSync('mkfifo', [media])
    const other = `${place}-once`
    const first = run(['backup', other])
    const isAtMedia = () => existsSync(other) && files(other).some((name) => name.endsWith('config.yaml.gz'))
    await vi.waitFor(() => expect(isAtMedia()).toBe(true), { timeout: 20_000 })
    const second = await run(['backup', place])
    writeFileSync(media, FILE)
    expect(await first).toMatchObject({ code: 0 })
    renameSync(`${media}.away`, media)
    expect(second.stderr).toContain('another backup of this database is running')
    expect(files(place)).toEqual(whole)
  })
})

describe('hearth backup verify', () => {
  const spoil: [string, (place: string, manifest: Manifest, path: string) => void, RegExp][] = [
    ['a truncated file', (place, { keys }) => truncateSync(join(place, keys.name), 5), /keys\.json\.gz has 5 bytes/],
    [
      'an altered file',
      (place, { database }) => {
        const name = join(place, database.tables.find(({ name }) => name === 'event')!.files[0]!.name)
        const bytes = readFileSync(name)
        bytes[30]! ^= 1
        writeFileSync(name, bytes)
      },
      /event\.00001\.gz was altered or damaged/,
    ],
    ['a missing file', (place, { config }) => rmSync(join(place, config.name)), /config\.yaml\.gz is missing/],
    [
      'an altered medium',
      (place, { media }) => writeFileSync(files(join(place, 'media', media.set))[0]!, 'other'),
      /media\/plain\/.* was altered or damaged/,
    ],
    [
      'an altered manifest',
      (_place, _manifest, path) => writeFileSync(path, readFileSync(path, 'utf8').replace(/"rows": 1\b/, '"rows": 2')),
      /manifest was altered/,
    ],
    [
      'a manifest of a newer form',
      (_place, _manifest, path) =>
        writeFileSync(path, readFileSync(path, 'utf8').replace('"format": 1', '"format": 2')),
      /a newer Hearth made it/,
    ],
    ['a backup without a manifest', (_place, _manifest, path) => rmSync(path), /holds no whole backup/],
  ]

  test.each(spoil)('finds %s', async (_name, change, finding) => {
    const place = `${kept.place}-spoilt`
    expect((await kept.run(['backup', place])).code).toBe(0)
    const { path, manifest } = manifestIn(place)
    change(place, manifest, path)
    const { code, stdout, stderr } = await kept.run(['backup', 'verify', place])
    expect(stdout + stderr).toMatch(finding)
    expect(code).toBe(1)
    rmSync(place, { recursive: true })
  })
})

test('backup verify --repair puts media of the server in place of damaged and missing ones, encrypted as they were', async () => {
  const { run, server, alice } = kept
  await uploadFile(server.baseUrl, alice.token, Buffer.from('another file'), {})
  const identity = await generateX25519Identity()
  const key = `${kept.place}-mended.key`
  writeFileSync(key, identity)
  for (const options of [[], ['--recipient', await identityToRecipient(identity)]]) {
    const place = `${kept.place}-mended-${options.length}`
    expect((await run(['backup', place, ...options])).code).toBe(0)
    const [one = '', two = ''] = files(join(place, 'media'))
    writeFileSync(one, 'other')
    rmSync(two)
    const reading = options.length === 0 ? [] : ['--identity-file', key]
    const before = await run(['backup', 'verify', place, ...reading])
    expect([before.code, before.stdout]).toEqual([1, expect.stringContaining('2 findings')])
    const mended = await run(['backup', 'verify', place, '--repair', ...reading])
    expect([mended.code, mended.stdout]).toEqual([0, expect.stringContaining('2 media files replaced')])
    expect((await run(['backup', 'verify', place, ...reading])).stdout).toContain('All of it is as it was written.')
    if (options.length > 0) expect(readFileSync(one).includes('age-encryption')).toBe(true)
  }
  // What the server does not have any more stays a finding.
  const place = `${kept.place}-mended-0`
  const hash = createHash('sha256').update('another file').digest('hex')
  const [path = ''] = files(join(server.config.data_dir, 'media')).filter((name) =>
    readFileSync(name).equals(Buffer.from('another file')),
  )
  renameSync(path, `${path}.away`)
  rmSync(files(join(place, 'media')).find((name) => name.endsWith(hash))!)
  const lost = await run(['backup', 'verify', place, '--repair'])
  renameSync(`${path}.away`, path)
  expect([lost.code, lost.stdout]).toEqual([1, expect.stringMatching(/is missing[\s\S]*1 finding:/)])
})

describe('an encrypted backup', () => {
  test('is made for a public key, and opened by its secret key, which the server need not have', async () => {
    const { run } = kept
    const place = `${kept.place}-public`
    const identity = await generateX25519Identity()
    const file = `${kept.place}-identity.txt`
    writeFileSync(file, `# the key of the safe\n${identity}\n`)
    const recipient = await identityToRecipient(identity)
    for (let times = 0; times < 2; times++)
      expect((await run(['backup', place, '--recipient', recipient, '--keep', '1d'])).code).toBe(0)
    expect((await run(['backup', 'verify', place, '--identity-file', file])).code).toBe(0)
    writeFileSync(file, await generateX25519Identity())
    expect((await run(['backup', 'verify', place, '--identity-file', file])).stdout).toContain('for somebody else')
    expect((await run(['backup', place, '--recipient', 'age1nonsense'])).stderr).toContain('no public key of age')
  })
})

test('a backup goes to a service that speaks S3, and is read back from there', async () => {
  const service = await startS3Service()
  try {
    const env = {
      HEARTH__BACKUP__S3__ENDPOINT: service.endpoint,
      HEARTH__BACKUP__S3__ACCESS_KEY_ID: S3_KEYS.access_key_id,
      HEARTH__BACKUP__S3__SECRET_ACCESS_KEY: S3_KEYS.secret_access_key,
      HEARTH__BACKUP__PLACE: `s3://${S3_KEYS.bucket}/some/where`,
    }
    for (let times = 0; times < 2; times++)
      expect(await kept.run(['backup', '--keep', '1d'], env)).toMatchObject({ code: 0 })
    expect(JSON.parse((await kept.run(['backup', 'list', '--json'], env)).stdout)).toHaveLength(1)
    expect((await kept.run(['backup', 'verify'], env)).code).toBe(0)
    await service.stop()
    expect((await kept.run(['backup'], env)).code).toBe(1)
    await service.start()
  } finally {
    await service.close()
  }
})
