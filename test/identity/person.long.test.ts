import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isUserId, type UserId } from '../../src/core/ids.ts'
import { lookupHash } from '../../src/core/lookup-hash.ts'
import { hashToken, tokenKind } from '../../src/domain/opaque-tokens.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { insertAcceptedUrls } from '../../src/store/identity/accepted-urls.ts'
import { ensureIdentityAccount, insertIdentityToken } from '../../src/store/identity/accounts.ts'
import { lockAddress, upsertBinding } from '../../src/store/identity/bindings.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { runProgramHere } from '../support/run-hearth.ts'
import { type IdentityApi, openIdentity, P1 } from './identity-api.ts'

const ROOM = '!tea:hs.test'
const TOKENS = tokenKind('hearth_identity_')

function user(name: string): UserId {
  if (!isUserId(name)) throw new Error(`${name} is no user id`)
  return name
}
const [ALICE, BOB, CARL] = [user('@alice:hs.test'), user('@bob:hs.test'), user('@carl:localhost')]

const NOBODIES: readonly [who: string, exit: number, says: string][] = [
  ['nobody@example.org', 1, 'The identity service keeps nothing of nobody@example.org.'],
  ['+49 151 23456789', 1, 'The identity service keeps nothing of +49 151 23456789.'],
  ['@nobody:hs.test', 1, 'The identity service keeps nothing of @nobody:hs.test.'],
  ['nobody', 1, 'This is no email address, no phone number with the code of its country'],
  ['0151 234567', 1, 'This is no email address, no phone number with the code of its country'],
  ['a@b@c', 1, 'This is no email address'],
  ['%00@example.org', 1, 'The identity service keeps nothing of %00@example.org.'],
  [`${'x'.repeat(300)}@example.org`, 2, 'no address and no user id is that long'],
  ['', 2, 'WHO"'],
]

describe.each(['client,identity', 'identity'])('a server of the roles %s', (roles) => {
  let server: ChildServer
  let identity: IdentityApi
  const isAlone = roles === 'identity'
  const tokens = new Map<UserId, string>()

  beforeAll(async () => {
    server = await startChildServer({ env: { HEARTH__ROLES: roles } })
    identity = openIdentity(server.baseUrl)
    await inDatabase(async (db) => {
      for (const userId of [ALICE, BOB, CARL]) await makeAccount(db, userId)
      await bind(db, 'email', 'alice@example.org', ALICE)
      await bind(db, 'msisdn', '447400123456', ALICE)
      await bind(db, 'email', 'bob@example.org', BOB)
      await bind(db, 'email', 'carl@example.org', CARL)
    })
  })
  afterAll(() => server.dispose())

  async function inDatabase(work: (db: Database) => Promise<void>): Promise<void> {
    const db = openDatabase({
      connection: { ...server.postgresSocket(), user: 'hearth', database: 'hearth' },
      poolSize: 1,
    })
    await work(db).finally(() => db.close())
  }
  async function makeAccount(db: Database, userId: UserId): Promise<void> {
    const token = TOKENS.make({ bytes: randomBytes })
    tokens.set(userId, token)
    await db.tx(async (tx) => {
      await ensureIdentityAccount(tx, userId, Date.now())
      await insertIdentityToken(tx, { hash: hashToken(token), userId, now: Date.now() }, 10)
      await insertAcceptedUrls(tx, userId, ['https://example.org/terms'], Date.now())
    })
  }
  async function bind(db: Database, medium: string, address: string, userId: UserId): Promise<void> {
    const binding = { medium, address, user_id: userId, bound_at: Date.now() }
    await db.tx(async (tx) => {
      await lockAddress(tx, binding)
      await upsertBinding(tx, binding)
    })
  }

  const hearth = (...words: string[]) =>
    runProgramHere(words, {
      directory: server.dataDir,
      env: {
        HEARTH__DATA_DIR: join(server.dataDir, 'data'),
        HEARTH__LISTEN__PORT: new URL(server.baseUrl).port,
        HEARTH__METRICS__PORT: '0',
        HEARTH__ROLES: roles,
      },
    })
  async function done(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await hearth(...words)
    expect([code, stderr], words.join(' ')).toEqual([0, ''])
    return stdout
  }
  const isKnown = async (userId: UserId) =>
    (await identity.ask('GET', '/account', { token: tokens.get(userId) })).status === 200
  /** By hash, and by the first generation's plain question. */
  async function finds(medium: 'email' | 'msisdn', address: string): Promise<boolean[]> {
    const token = tokens.get(BOB)
    const { lookup_pepper: pepper } = (await identity.ask('GET', '/hash_details', { token })).body
    const hashed = lookupHash(address, medium, pepper)
    const body = { algorithm: 'sha256', pepper, addresses: [hashed] }
    const { mappings } = (await identity.ask('POST', '/lookup', { token, body })).body
    const plain = await identity.ask('GET', `${P1}/lookup?medium=${medium}&address=${encodeURIComponent(address)}`)
    return [Object.hasOwn(mappings, hashed), plain.body.mxid !== undefined]
  }
  async function invite(address: string, sender: UserId): Promise<string> {
    const body = { medium: 'email', address, room_id: ROOM, sender }
    const { body: made } = await identity.ask('POST', `${P1}/store-invite`, { body })
    return made.public_keys[1].public_key ?? made.public_keys[1]
  }
  const validate = (email: string) =>
    identity.ask('POST', `${P1}/validate/email/requestToken`, {
      body: { email, client_secret: `of.${email}`.replaceAll(/[^a-z.]/g, '-'), send_attempt: 1 },
    })

  test('D2: identity show lists bindings, validations and invitations of a user and of an address', async () => {
    expect((await validate('alice@example.org')).status).toBe(200)
    await invite('newcomer@example.org', ALICE)
    const shown = await done('identity', 'show', ALICE)
    for (const text of ['alice@example.org', '447400123456', 'https://example.org/terms', 'newcomer@example.org', ROOM])
      expect(shown).toContain(text)
    expect(shown).not.toContain('bob@example.org')
    const json = JSON.parse(await done('identity', 'show', 'Alice@Example.org', '--json'))
    expect(json).toEqual({
      account: null,
      bindings: [{ medium: 'email', address: 'alice@example.org', user_id: ALICE, bound_ts: expect.any(Number) }],
      sessions: [
        {
          ...{ medium: 'email', address: 'alice@example.org', realm: 'identity', created_ts: expect.any(Number) },
          ...{ validated_ts: null, expires_ts: expect.any(Number) },
        },
      ],
      invitations: [],
    })
    expect(JSON.parse(await done('identity', 'show', '+44 7400 123456', '--json')).bindings).toMatchObject([
      { medium: 'msisdn', user_id: ALICE },
    ])
    expect(JSON.parse(await done('identity', 'show', '@carl', '--json'))).toMatchObject({
      account: { tokens: 1 },
      bindings: [{ address: 'carl@example.org' }],
    })
  })

  test('D2: identity erase beside a running server removes all of a user at once, and says what it was', async () => {
    const key = await invite('other@example.org', ALICE)
    expect([await isKnown(ALICE), await isKnown(BOB)]).toEqual([true, true])
    expect(await finds('email', 'alice@example.org')).toEqual([true, true])
    // What is looked up again is answered from memory.
    expect(await finds('msisdn', '447400123456')).toEqual([true, true])
    const said = await done('identity', 'erase', ALICE)
    for (const text of [
      'the binding of alice@example.org to @alice:hs.test',
      'the binding of 447400123456 to @alice:hs.test',
      '1 validation session\n',
      '2 invitations\n',
      'the account, with 1 token and what it accepted',
    ])
      expect(said).toContain(text)
    expect([await isKnown(ALICE), await isKnown(BOB)]).toEqual([false, true])
    expect(await finds('email', 'alice@example.org')).toEqual([false, false])
    expect(await finds('msisdn', '447400123456')).toEqual([false, false])
    expect(await finds('email', 'bob@example.org')).toEqual([true, true])
    const asked = await identity.ask('GET', `${P1}/pubkey/ephemeral/isvalid?public_key=${encodeURIComponent(key)}`)
    expect(asked.body).toEqual({ valid: false })
    for (const verb of ['show', 'erase']) {
      const { code, stderr } = await hearth('identity', verb, ALICE)
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining('The identity service keeps nothing of @alice:hs.test.'),
      ])
    }
    await inDatabase(async (db) => {
      const texts = await db.query<{ name: string }>(
        `SELECT table_name AS name FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_name LIKE 'identity%'`,
      )
      for (const { name } of texts) {
        const rows = await db.query(`SELECT 1 AS one FROM ${name} t WHERE t::text ~ 'alice|447400123456'`)
        expect(rows, name).toEqual([])
      }
    })
  })

  test('D2: identity erase of an address leaves its user an account', async () => {
    const key = await invite('carl2@example.org', BOB)
    await inDatabase((db) => bind(db, 'email', 'carl2@example.org', CARL))
    expect(await done('identity', 'erase', 'CARL2@example.org')).toContain(
      'the binding of carl2@example.org to @carl:localhost\n  1 invitation\n',
    )
    expect(await finds('email', 'carl2@example.org')).toEqual([false, false])
    expect(await finds('email', 'carl@example.org')).toEqual([true, true])
    expect(await isKnown(CARL)).toBe(true)
    const asked = await identity.ask('GET', `${P1}/pubkey/ephemeral/isvalid?public_key=${encodeURIComponent(key)}`)
    expect(asked.body).toEqual({ valid: false })
  })

  test.each(NOBODIES)('D2: identity show and erase say of %j that it is nobody', async (who, exit, says) => {
    for (const verb of ['show', 'erase']) {
      const { code, stderr } = await hearth('identity', verb, who)
      expect([code, stderr]).toEqual([exit, expect.stringContaining(says)])
    }
  })

  test.runIf(isAlone)('D2: what an identity service alone does not do is told so', async () => {
    const { code, stderr } = await hearth('user', 'list')
    expect([code, stderr]).toEqual([1, expect.stringContaining('it is an identity service alone')])
    expect(await done('audit')).toContain('/_hearth/admin/v1/identity/people/{person}')
  })

  test('D2: identity show and erase are on record, and work without a running server', async () => {
    await server.kill('SIGTERM')
    expect(JSON.parse(await done('identity', 'show', CARL, '--json')).bindings).toHaveLength(1)
    expect(await done('identity', 'erase', 'carl@example.org')).toContain('the binding of carl@example.org')
    expect(await done('identity', 'erase', CARL)).toContain('the account, with 1 token')
    const acts = JSON.parse(await done('audit', '--json'))
    const path = '/_hearth/admin/v1/identity/people/{person}'
    expect(acts).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ actor: 'command line', act: `DELETE ${path}`, target: ALICE, outcome: 'done' }),
        expect.objectContaining({ act: `GET ${path}`, target: 'Alice@Example.org', outcome: 'done' }),
        expect.objectContaining({ act: `DELETE ${path}`, target: 'nobody@example.org', outcome: 'M_NOT_FOUND' }),
        expect.objectContaining({ act: `DELETE ${path}`, target: CARL, outcome: 'done' }),
      ]),
    )
    await server.start()
    expect(await isKnown(CARL)).toBe(false)
    expect(await finds('email', 'carl@example.org')).toEqual([false, false])
    expect(await finds('email', 'bob@example.org')).toEqual([true, true])
  })
})
