import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadIdentityKeys, rotateIdentityKey } from '../../../src/cli/serve/identity-key-file.ts'
import { decodeBase64, encodeBase64 } from '../../../src/core/base64.ts'
import { verifyJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { runHearth } from '../../support/run-hearth.ts'
import { type IdentityApi, openIdentity } from '../identity-api.ts'

/** A seed whose public half has both letters in which the alphabets differ. */
function seedWithBothLetters(): Buffer {
  for (;;) {
    const seed = randomBytes(32)
    const { publicKey } = signingKeyFromSeed('ed25519:0', seed)
    if (publicKey.includes('+') && publicKey.includes('/')) return seed
  }
}

const current = signingKeyFromSeed('ed25519:1', seedWithBothLetters())
const old = signingKeyFromSeed('ed25519:0', randomBytes(32))
const stranger = signingKeyFromSeed('ed25519:0', randomBytes(32))

let server: AccountServer
let identity: IdentityApi

beforeAll(async () => {
  server = await startAccountServer({}, { keyRing: { current, old: [old] } })
  identity = openIdentity(server.baseUrl)
})

afterAll(() => server.close())

const GENERATIONS = [
  '/_proto/identity/v2',
  '/_proto/identity/api/v1',
  '/_matrix/identity/v2',
  '/_matrix/identity/api/v1',
]

const isValid = (kind: string, publicKey: string, root = GENERATIONS[0]) =>
  identity.ask('GET', `${root}/pubkey/${kind}?public_key=${publicKey}`)

describe.each(GENERATIONS)('seed 1, "Keys", at %s', (root) => {
  it('GET pubkey/{keyId}: 200 {public_key}, of the key in use and of an old one', async () => {
    const get = (keyId: string) => identity.ask('GET', `${root}/pubkey/${keyId}`)
    expect(await get('ed25519:1')).toMatchObject({ status: 200, body: { public_key: current.publicKey } })
    expect(await get('ed25519%3A0')).toMatchObject({ status: 200, body: { public_key: old.publicKey } })
  })

  it.each(['ed25519:2', 'ed25519', 'x', 'ed25519:', '__proto__'])('GET pubkey/%s: 404 M_NOT_FOUND', async (keyId) => {
    const answer = await identity.ask('GET', `${root}/pubkey/${keyId}`)
    expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND', error: expect.any(String) } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  it('GET pubkey/isvalid: 200 {valid} for a long-term key, and M_MISSING_PARAMS without one', async () => {
    const ask = (key: string) => isValid('isvalid', encodeURIComponent(key), root)
    expect(await ask(current.publicKey)).toMatchObject({ status: 200, body: { valid: true } })
    expect(await ask(old.publicKey)).toMatchObject({ status: 200, body: { valid: true } })
    expect(await ask(stranger.publicKey)).toMatchObject({ status: 200, body: { valid: false } })
    expect(await identity.ask('GET', `${root}/pubkey/isvalid`)).toMatchObject({
      status: 400,
      body: { errcode: 'M_MISSING_PARAMS' },
    })
    expect(await isValid('isvalid', 'a&public_key=b', root)).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
  })

  it('GET pubkey/ephemeral/isvalid: 200 {valid} for a short-term key, and not for a long-term one', async () => {
    const { keys } = server.services.identity
    const made = await server.db.tx((tx) => keys.createEphemeral(tx))
    const ask = (key: string) => isValid('ephemeral/isvalid', encodeURIComponent(key), root)
    expect(await ask(made.publicKey)).toMatchObject({ status: 200, body: { valid: true } })
    expect(await ask(current.publicKey)).toMatchObject({ status: 200, body: { valid: false } })
    expect(await isValid('isvalid', encodeURIComponent(made.publicKey), root)).toMatchObject({ body: { valid: false } })
    expect(await identity.ask('GET', `${root}/pubkey/ephemeral/isvalid`)).toMatchObject({
      status: 400,
      body: { errcode: 'M_MISSING_PARAMS' },
    })
  })
})

describe('facts 29: how a key may be written', () => {
  const { publicKey } = current
  it.each([
    ['standard, escaped', encodeURIComponent(publicKey)],
    ['standard, unescaped, so that + arrives as a space', publicKey],
    ['padded', `${encodeURIComponent(publicKey)}%3D`],
    ['URL-safe', publicKey.replaceAll('+', '-').replaceAll('/', '_')],
    ['URL-safe and padded', `${publicKey.replaceAll('+', '-').replaceAll('/', '_')}=`],
  ])('%s', async (_name, text) => {
    expect((await isValid('isvalid', text)).body).toEqual({ valid: true })
  })

  it.each(['', 'x', '%00', 'A'.repeat(5000), '%F0%9F%94%A5', encodeURIComponent(`${publicKey}A`)])(
    'what is no key is not valid, and no error: %.20s',
    async (text) => {
      for (const kind of ['isvalid', 'ephemeral/isvalid']) {
        expect(await isValid(kind, text)).toMatchObject({ status: 200, body: { valid: false } })
      }
    },
  )

  it('keys go out in the standard alphabet, unpadded', async () => {
    const { body } = await identity.ask('GET', '/pubkey/ed25519:1')
    expect(body.public_key).toMatch(/^[A-Za-z0-9+/]{43}$/)
  })
})

describe('short-term keys', () => {
  it('S29: the private half is kept nowhere, and belongs to the public one', async () => {
    const made = await server.db.tx((tx) => server.services.identity.keys.createEphemeral(tx))
    expect(signingKeyFromSeed('ed25519:0', decodeBase64(made.privateKey)!).publicKey).toBe(made.publicKey)
    const rows = await server.db.query('SELECT * FROM identity_ephemeral_key')
    expect(JSON.stringify(rows)).not.toContain(made.privateKey)
  })

  it('facts 27: they end with their invitation', async () => {
    const expiresAt = server.services.clock.now() + 1000
    const made = await server.db.tx((tx) => server.services.identity.keys.createEphemeral(tx, expiresAt))
    const ask = async () => (await isValid('ephemeral/isvalid', encodeURIComponent(made.publicKey))).body.valid
    expect(await ask()).toBe(true)
    server.advance(1000)
    expect(await ask()).toBe(false)
  })
})

it('seed 1, "What the service does" 3: what it signs can be verified with the key it publishes', async () => {
  const signed = server.services.identity.keys.sign({ address: 'a@b.test', medium: 'email' })
  const [keyId] = Object.keys(signed.signatures.localhost ?? {})
  const { body } = await identity.ask('GET', `/pubkey/${keyId}`)
  expect(verifyJson(signed, 'localhost', keyId!, body.public_key)).toBe(true)
})

describe('identity.key', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hearth-keys-'))
  })
  afterEach(() => rm(directory, { recursive: true }))
  const path = () => join(directory, 'identity.key')

  it('S29: is made once, for its owner only, with ed25519:0; readable by others it is refused', async () => {
    const first = await loadIdentityKeys(directory)
    expect(first.current.keyId).toBe('ed25519:0')
    expect((await stat(path())).mode & 0o777).toBe(0o600)
    expect((await loadIdentityKeys(directory)).current.publicKey).toBe(first.current.publicKey)
    await chmod(path(), 0o640)
    await expect(loadIdentityKeys(directory)).rejects.toThrow('chmod 600')
  })

  it('rotation keeps the old keys listed, their secret halves nowhere; a removed line revokes', async () => {
    const first = (await loadIdentityKeys(directory)).current
    const [seed = ''] = /\S{43}/.exec(await readFile(path(), 'utf8')) ?? []
    const second = (await rotateIdentityKey(directory)).current
    const third = await rotateIdentityKey(directory)
    expect([first, second, third.current].map(({ keyId }) => keyId)).toEqual(['ed25519:0', 'ed25519:1', 'ed25519:2'])
    expect(third.old).toEqual([second, first].map(({ keyId, publicKey }) => ({ keyId, publicKey })))
    const text = await readFile(path(), 'utf8')
    expect(text).not.toContain(seed)
    await writeFile(path(), text.split('\n').slice(0, 2).join('\n'))
    expect((await loadIdentityKeys(directory)).old).toHaveLength(1)
    expect((await rotateIdentityKey(directory)).current.keyId).toBe('ed25519:3')
  })

  it.each([
    ['', 'does not begin with a key'],
    [`old ed25519 0 ${encodeBase64(randomBytes(32))}\n`, 'does not begin with a key'],
    [`ed25519 0 ${encodeBase64(randomBytes(32))}\nrubbish\n`, 'identity.key:2'],
  ])('%.12j is refused', async (text, message) => {
    await writeFile(path(), text, { mode: 0o600 })
    await expect(loadIdentityKeys(directory)).rejects.toThrow(message)
  })

  it('hearth identity rotate-key and show-keys', async () => {
    const hearth = (words: string) => runHearth(words.split(' '), { directory, env: { HEARTH__DATA_DIR: directory } })
    const before = await hearth('identity show-keys')
    expect(before.stdout).toMatch(/^ed25519:0 \S{43}\n$/)
    expect(await hearth('identity rotate-key')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ed25519:1 '),
    })
    const { stdout } = await hearth('identity show-keys')
    expect(stdout).toMatch(/^ed25519:1 \S{43}\n/)
    expect(stdout).toContain(`${before.stdout.trim()} (old)`)
    expect(await hearth('identity')).toMatchObject({ code: 2, stderr: expect.stringContaining('say ') })
  })
})
