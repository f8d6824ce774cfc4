import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Manifest, writeManifest } from '../../src/core/backup/manifest.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { sha256Of } from '../../src/domain/backup/backup-files.ts'
import { type Mac, prove } from '../../src/domain/backup/proof.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type KeptServer, placeKey, startKeptServer } from './kept-server.ts'

const PASSPHRASE = { HEARTH__BACKUP__PASSPHRASE: 'correct horse' }

let kept: KeptServer
let identityFile: string
let recipient: string
let count = 0
const databases: TestDatabase[] = []

beforeAll(async () => {
  kept = await startKeptServer()
  const identity = await generateX25519Identity()
  identityFile = `${kept.place}-identity.txt`
  writeFileSync(identityFile, identity)
  recipient = await identityToRecipient(identity)
})
afterAll(async () => {
  for (const database of databases) await database.drop()
  await kept.close()
})

/** An empty machine: no key file tells what the server's key is. */
async function elsewhere() {
  const database = await createTestDatabase(true)
  databases.push(database)
  const dataDir = `${kept.place}-elsewhere-${++count}`
  return { HEARTH__DATABASE__URL: database.url, HEARTH__DATA_DIR: dataDir, HEARTH__LISTEN__PORT: '1' }
}

async function backup(options: readonly string[], env = {}): Promise<string> {
  const place = `${kept.place}-${++count}`
  if (env === PASSPHRASE) await placeKey(place, PASSPHRASE.HEARTH__BACKUP__PASSPHRASE)
  expect(await kept.run(['backup', place, ...options], env)).toMatchObject({ code: 0 })
  return place
}

/** Rewrites the manifest as somebody can who may write there: with the right hash, and a signature of their own. */
function forge(place: string, change: (manifest: Manifest) => Manifest, mac?: Mac): void {
  const [id = ''] = readdirSync(join(place, 'backups'))
  const path = join(place, 'backups', id, 'manifest.json')
  const key = signingKeyFromSeed('ed25519:theirs', randomBytes(32))
  const changed = change(JSON.parse(readFileSync(path, 'utf8')) as Manifest)
  writeFileSync(
    path,
    writeManifest(changed, sha256Of, (text) => prove('manifest', text, { mac, key })),
  )
}

/** Takes the signature away, as a backup of an early release has none. */
function unsign(place: string): void {
  const [id = ''] = readdirSync(join(place, 'backups'))
  const path = join(place, 'backups', id, 'manifest.json')
  const { proof: _, ...manifest } = JSON.parse(readFileSync(path, 'utf8')) as Manifest
  const sha256 = sha256Of(JSON.stringify({ ...manifest, sha256: '' }))
  writeFileSync(path, JSON.stringify({ ...manifest, sha256 }))
}

const longer = (manifest: Manifest): Manifest => ({ ...manifest, ended_at: manifest.ended_at + 1 })

describe('a backup with a passphrase', () => {
  test('is believed where its manifest is of who has the passphrase, also on an empty machine', async () => {
    const place = await backup([], PASSPHRASE)
    const empty = await elsewhere()
    expect(await kept.run(['backup', 'verify', place], { ...empty, ...PASSPHRASE })).toMatchObject({ code: 0 })
    forge(place, longer, () => 'f'.repeat(64))
    const verified = await kept.run(['backup', 'verify', place], PASSPHRASE)
    expect(verified).toMatchObject({ code: 1, stderr: expect.stringContaining('altered after it had been made') })
    const restored = await kept.run(['restore', place], { ...empty, ...PASSPHRASE })
    expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining('altered after it had been made') })
    forge(place, longer)
    expect((await kept.run(['restore', place], { ...empty, ...PASSPHRASE })).stderr).toContain(
      'it was not made with the passphrase',
    )
  })

  test('is not replaced by one without encryption', async () => {
    const place = await backup([], PASSPHRASE)
    forge(place, (manifest) => ({ ...manifest, recipients: [] }))
    const { code, stderr } = await kept.run(['backup', 'verify', place], PASSPHRASE)
    expect([code, stderr]).toEqual([1, expect.stringContaining('it is not encrypted, although a passphrase')])
  })
})

describe('a backup for a secret key', () => {
  test('is believed where its key is that of the key file, or the one that the operator noted', async () => {
    const made = await kept.run(['backup', `${kept.place}-noted`, '--recipient', recipient])
    expect(made.stdout).toContain(`Signed by ${kept.publicKey}`)
    const place = `${kept.place}-noted`
    const verify = (words: string[] = [], env = {}) =>
      kept.run(['backup', 'verify', place, '--identity-file', identityFile, ...words], env)
    expect(await verify()).toMatchObject({ code: 0 })
    const empty = await elsewhere()
    const unknown = await verify([], empty)
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining(`say --signed-by ${kept.publicKey}`) })
    expect(await verify(['--signed-by', kept.publicKey], empty)).toMatchObject({ code: 0 })
    forge(place, longer)
    expect((await verify()).stderr).toContain('is no key of this server')
    expect((await verify(['--signed-by', kept.publicKey], empty)).stderr).toContain('is no key of this server')
    expect((await verify(['--signed-by', 'nonsense'], empty)).code).toBe(2)
  })
})

test('a backup that is not signed is told from others, and taken only when it is said', async () => {
  const place = await backup([])
  unsign(place)
  expect((await kept.run(['backup', 'list', place])).stdout).toContain('not signed')
  const { code, stderr } = await kept.run(['backup', 'verify', place])
  expect([code, stderr]).toEqual([1, expect.stringContaining('it is not signed, as Hearth')])
  expect(await kept.run(['backup', 'verify', place, '--even-if-unsigned'])).toMatchObject({ code: 0 })
  const empty = await elsewhere()
  expect((await kept.run(['restore', place], empty)).stderr).toContain('it is not signed')
  expect(await kept.run(['restore', place, '--even-if-unsigned'], empty)).toMatchObject({ code: 0 })
})

test('a manifest whose signature is of another text is refused where nothing else is known of it', async () => {
  const place = await backup([])
  const [id = ''] = readdirSync(join(place, 'backups'))
  const path = join(place, 'backups', id, 'manifest.json')
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest
  const altered = { ...manifest, ended_at: manifest.ended_at + 1 }
  writeFileSync(path, JSON.stringify({ ...altered, sha256: sha256Of(JSON.stringify({ ...altered, sha256: '' })) }))
  expect((await kept.run(['restore', place], await elsewhere())).stderr).toContain('altered after it had been made')
})

test('no backup is made without the key of the server', async () => {
  const env = { HEARTH__DATA_DIR: `${kept.place}-nothing` }
  const { code, stderr } = await kept.run(['backup', `${kept.place}-none`], env)
  expect([code, stderr]).toEqual([1, expect.stringContaining('signing.key is missing')])
})
