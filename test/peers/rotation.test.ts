import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { loadSigningKey, openSigningKey, signingKeyPath } from '../../src/cli/serve/signing-key-file.ts'
import { verifyJson } from '../../src/core/signing/json-signature.ts'
import { MAX_FORMER_KEYS } from '../../src/domain/limits.ts'
import { type Account, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

const enc = encodeURIComponent

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account
let room: string

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  stranger = await openStranger(street.authority)
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  const body = { preset: 'public_chat', room_alias_name: 'old', name: 'From before' }
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
})
afterAll(async () => {
  await stranger.close()
  await street.close()
})

const keyIdsOf = async (eventId: string): Promise<string[]> => {
  const rows = await alpha.server.database.db.query<{ json: string }>('SELECT json FROM event WHERE event_id = $1', [
    eventId,
  ])
  return Object.keys(JSON.parse(rows[0]!.json).signatures[alpha.name])
}
const lastOfBob = async () => {
  const path = `/rooms/${enc(room)}/messages?dir=b&limit=1`
  const { chunk } = await beta.api.call('GET', path, { token: bob.token })
  return chunk[0].content.body as string
}
const keyRequests = () => alpha.front.requests.filter(({ url }) => url.includes('/key/v2/server')).length

describe('a signing key that is replaced', () => {
  const first = 'ed25519:home'
  let before: string

  it('is published as out of use, beside the new one, which signs from then on', async () => {
    before = await sendText(alpha.api, alice.token, room, 'before', 'before')
    expect(await keyIdsOf(before)).toEqual([first])
    const { keyId, publicKey } = await alpha.server.services.ownKeys.rotate()
    const shown = await alpha.api.call('GET', '/_matrix/key/v2/server')
    expect(shown).toMatchObject({
      verify_keys: { [keyId]: { key: publicKey } },
      old_verify_keys: { [first]: { key: alpha.signingKey.publicKey } },
    })
    expect(Object.keys(shown.verify_keys)).toEqual([keyId])
    const { expired_ts: expired } = shown.old_verify_keys[first]
    expect(Math.abs(expired - Date.now())).toBeLessThan(120_000)
    expect(verifyJson(shown, alpha.name, keyId, publicKey)).toBe(true)
    expect(await keyIdsOf(await sendText(alpha.api, alice.token, room, 'after', 'after'))).toEqual([keyId])
  })

  it('is good for what it signed, at a server that comes later', async () => {
    await beta.api.call('POST', `/join/${enc(`#old:${alpha.name}`)}`, { token: bob.token, body: {} })
    const name = await beta.api.call('GET', `/rooms/${enc(room)}/state/m.room.name`, { token: bob.token })
    expect(name).toEqual({ name: 'From before' })
    const rows = await beta.server.database.db.query<{ key_id: string; is_old: boolean }>(
      'SELECT key_id, is_old FROM server_key WHERE server_name = $1',
      [alpha.name],
    )
    expect(rows).toContainEqual({ key_id: first, is_old: true })
    expect(rows).toHaveLength(2)
  })

  it('is learned of at once by a server that knows the one before, and by answers too', async () => {
    await sendText(alpha.api, alice.token, room, 'known', 'known')
    await waitUntil('the message', async () => (await lastOfBob()) === 'known')
    const asked = keyRequests()
    await Promise.all([alpha.server.services.ownKeys.rotate(), alpha.server.services.ownKeys.rotate()])
    expect(alpha.server.services.ownKeys.published().old_verify_keys).toMatchObject({ 'ed25519:test_2': {} })
    await sendText(alpha.api, alice.token, room, 'new', 'new')
    await waitUntil('the message', async () => (await lastOfBob()) === 'new')
    expect(keyRequests()).toBe(asked + 1)
    const invited = { user_id: `@nobody:${alpha.name}` }
    const path = `/rooms/${enc(room)}/invite`
    // It signs what it is invited to, with the key that it has now.
    await alpha.person('nobody')
    await beta.api.call('POST', path, { token: bob.token, body: invited })
  })

  it('does not sign for others any more', async () => {
    const to = { name: alpha.name, url: alpha.server.baseUrl }
    const key = alpha.signingKey
    const uri = `/_matrix/federation/v1/query/profile?user_id=${enc(alice.userId)}`
    const asked = await stranger.ask(to, 'GET', uri, { origin: stranger.name, key })
    expect([asked.status, asked.body.errcode]).toEqual([401, 'M_UNAUTHORIZED'])
  })
})

describe('the file of the signing key', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hearth-keys-'))
  })
  afterAll(() => rm(directory, { recursive: true }))

  test('holds the keys that were, also over starts, and what was cut off changes nothing', async () => {
    const key = await openSigningKey(directory)
    const first = { keyId: key.keyId, publicKey: key.publicKey }
    // As a kill leaves it in the middle of writing.
    await writeFile(`${signingKeyPath(directory)}.new`, 'ed25519 a_', { mode: 0o600 })
    expect((await loadSigningKey(directory)).current).toMatchObject(first)
    expect(await key.rotate(1_000)).toEqual({ ...first, expiredTs: 61_000 })
    const second = { keyId: key.keyId, publicKey: key.publicKey }
    await key.rotate(2_000)
    const { current, former } = await loadSigningKey(directory)
    expect(current).toMatchObject({ keyId: key.keyId, publicKey: key.publicKey })
    expect(former).toEqual([
      { ...second, expiredTs: 62_000 },
      { ...first, expiredTs: 61_000 },
    ])
    expect(new Set([first.keyId, second.keyId, key.keyId]).size).toBe(3)
    for (let times = 0; times < MAX_FORMER_KEYS; times++) await key.rotate(3_000)
    expect((await loadSigningKey(directory)).former).toHaveLength(MAX_FORMER_KEYS)
  })

  test('that cannot be written leaves the key in use that is there', async () => {
    const key = await openSigningKey(directory)
    const { keyId } = key
    const text = await readFile(signingKeyPath(directory), 'utf8')
    await rm(directory, { recursive: true })
    await expect(key.rotate(1_000)).rejects.toThrow()
    expect(key.keyId).toBe(keyId)
    await writeFile(directory, '')
    expect(text).toContain(keyId.replace(':', ' '))
  })

  test('says what is wrong with it', async () => {
    const other = await mkdtemp(join(tmpdir(), 'hearth-keys-'))
    await openSigningKey(other)
    const path = signingKeyPath(other)
    await writeFile(path, `${await readFile(path, 'utf8')}old ed25519 a nonsense\n`, { mode: 0o600 })
    await expect(openSigningKey(other)).rejects.toThrow(/signing\.key:2: expected "old ed25519/)
    // Security row 13.
    await writeFile(path, 'ed25519 0 AZT9wvov/MBB0/8SBFtzyG5P+V/2YqXu6Cq99EotC3U\n', { mode: 0o600 })
    await expect(openSigningKey(other)).rejects.toThrow(/everybody has .* hearth keys generate/)
    await rm(other, { recursive: true })
  })
})
