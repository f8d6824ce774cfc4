import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { decodeBase64 } from '../../../src/core/base64.ts'
import { verifyJson } from '../../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../../src/core/signing/key.ts'
import { harmlessName } from '../../../src/domain/identity/invite-mail.ts'
import { decodeQuotedPrintable } from '../../support/smtp.ts'
import { type Answer, P1 } from '../identity-api.ts'
import { type People, startPeople } from '../people.ts'

const SENDER = '@sender:hs.test'
const DAY = 24 * 3_600_000

let people: People
let counter = 0
let address: string
let token: string

beforeAll(async () => {
  people = await startPeople({ invites: { lifetime_days: 30, client_url: 'https://app.hearth.test/#/room/' } })
  token = await people.tokenOf(SENDER)
})

afterAll(() => people.close())

beforeEach(() => {
  address = `invitee${counter++}@example.org`
  people.refuseMails(null)
  people.smtp.mails.length = 0
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const request = (change: object = {}) => ({
  medium: 'email',
  address,
  room_id: '!r:hs.test',
  sender: SENDER,
  ...change,
})
/** `by` is nobody where it is empty. */
const store = (change: object = {}, path = '/store-invite', by = token) =>
  people.identity.ask('POST', path, { token: by || undefined, body: request(change) })
const mailText = () => decodeQuotedPrintable(people.smtp.mails.at(-1)?.raw ?? '')
const privateKey = () => {
  const link = new URL(/https:\/\/app\.hearth\.test\S+/.exec(mailText())?.[0] ?? 'nothing:')
  const sign = new URL(new URLSearchParams(link.hash.slice(link.hash.indexOf('?') + 1)).get('signurl') ?? 'nothing:')
  return sign.searchParams.get('private_key') as string
}
const isValid = async (kind: string, key: string) =>
  (await people.identity.ask('GET', `/pubkey/${kind}?public_key=${encodeURIComponent(key)}`)).body.valid

describe('seed 1, POST P2/store-invite', () => {
  it('200 {token, public_keys, display_name}; the keys are a long-term and a short-term one, both valid', async () => {
    const { status, body } = await store()
    expect(status).toBe(200)
    expect(body.token).toMatch(/^[0-9a-zA-Z.=_-]{64}$/)
    expect(body.display_name).toBe('i...@e...')
    const [longTerm, ephemeral, ...more] = body.public_keys
    expect(more).toEqual([])
    expect((await people.identity.ask('GET', '/pubkey/ed25519:0')).body.public_key).toBe(longTerm)
    expect(await isValid('isvalid', longTerm)).toBe(true)
    expect(await isValid('ephemeral/isvalid', ephemeral)).toBe(true)
    expect(await isValid('isvalid', ephemeral)).toBe(false)
  })

  it('facts 2: under /_matrix each key has the URL under which its validity is asked', async () => {
    const { body } = await store({}, '/_matrix/identity/v2/store-invite')
    expect(body.public_keys).toEqual([
      { public_key: body.public_key, key_validity_url: 'https://id.hearth.test/_matrix/identity/v2/pubkey/isvalid' },
      {
        public_key: expect.any(String),
        key_validity_url: 'https://id.hearth.test/_matrix/identity/v2/pubkey/ephemeral/isvalid',
      },
    ])
  })

  it('mails the address, with the private half of the key, which is kept nowhere', async () => {
    const { body } = await store({
      address: address.toUpperCase(),
      room_name: 'Sofas',
      room_alias: '#sofas:hs.test',
      sender_display_name: 'Sam',
      further: { any: ['thing'] },
    })
    expect(people.smtp.mails).toHaveLength(1)
    expect(people.smtp.mails[0]?.to).toEqual([address])
    for (const text of ['Sam', 'Sofas', '#sofas:hs.test', SENDER]) expect(mailText()).toContain(text)
    const key = privateKey()
    expect(signingKeyFromSeed('ed25519:0', decodeBase64(key) as Buffer).publicKey).toBe(body.public_keys[1])
    const rows = JSON.stringify([
      await people.server.db.query('SELECT * FROM identity_invite'),
      await people.server.db.query('SELECT * FROM identity_ephemeral_key'),
    ])
    expect(rows).not.toContain(key)
    expect(rows).toContain('further')
    expect(people.server.logged()).not.toContain(key)
  })

  it('400 M_THREEPID_IN_USE with mxid where the address is bound, and no mail', async () => {
    await people.bind(address, '@owner:hs.test')
    people.smtp.mails.length = 0
    const answer = await store({ address: address.toUpperCase() })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_THREEPID_IN_USE', mxid: '@owner:hs.test' } })
    expect(people.smtp.mails).toHaveLength(0)
  })

  it('facts S5: nobody invites in the name of another, except in the first generation', async () => {
    expect(outcome(await store({ sender: '@other:hs.test' }))).toEqual([403, 'M_UNAUTHORIZED'])
    expect(people.smtp.mails).toHaveLength(0)
    expect(await store({ sender: '@other:hs.test' }, `${P1}/store-invite`, '')).toMatchObject({ status: 200 })
  })

  it('the first generation takes forms', async () => {
    const body = new URLSearchParams({ ...request(), room_name: 'Form' })
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await people.identity.ask('POST', `${P1}/store-invite`, { body, headers })
    expect(answer).toMatchObject({ status: 200 })
    expect(mailText()).toContain('Form')
  })

  it.each([
    [{ medium: 'msisdn', address: '18005552067' }, 'M_UNRECOGNIZED'],
    [{ medium: 'Email' }, 'M_UNRECOGNIZED'],
    [{ medium: undefined }, 'M_MISSING_PARAMS'],
    [{ address: undefined }, 'M_MISSING_PARAMS'],
    [{ room_id: undefined }, 'M_MISSING_PARAMS'],
    [{ sender: undefined }, 'M_MISSING_PARAMS'],
    [{ address: 'nodomain' }, 'M_INVALID_EMAIL'],
    [{ address: 'a@b@c.test' }, 'M_INVALID_EMAIL'],
    [{ address: 'a@b.test,c@d.test' }, 'M_INVALID_EMAIL'],
    [{ address: 'a@b.test\r\nBcc: c@d.test' }, 'M_INVALID_EMAIL'],
    [{ room_id: 'room' }, 'M_INVALID_PARAM'],
    [{ sender: 'sender' }, 'M_INVALID_PARAM'],
    [{ room_name: ['x'] }, 'M_INVALID_PARAM'],
    [{ sender_display_name: 7 }, 'M_INVALID_PARAM'],
  ])('facts S27: %j gives 400 %s, before anything is stored or sent', async (change, errcode) => {
    const before = await people.server.db.query('SELECT count(*) AS n FROM identity_ephemeral_key')
    expect(outcome(await store(change))).toEqual([400, errcode])
    expect(people.smtp.mails).toHaveLength(0)
    expect(await people.server.db.query('SELECT count(*) AS n FROM identity_ephemeral_key')).toEqual(before)
  })

  it('facts S6: what is too long is refused', async () => {
    expect(outcome(await store({ address: `${'a'.repeat(500)}@b.test` }))).toEqual([400, 'M_INVALID_EMAIL'])
    expect(outcome(await store({ topic: 'x'.repeat(17_000) }))).toEqual([400, 'M_TOO_LARGE'])
    expect(outcome(await store({ room_id: `!${'x'.repeat(255)}:hs.test` }))).toEqual([400, 'M_INVALID_PARAM'])
    expect(people.smtp.mails).toHaveLength(0)
  })

  it('a mail that cannot be sent: 400 M_EMAIL_SEND_ERROR, and nothing is left', async () => {
    people.refuseMails(new Error('not today'))
    expect(outcome(await store())).toEqual([400, 'M_EMAIL_SEND_ERROR'])
    const rows = await people.server.db.query('SELECT 1 FROM identity_invite WHERE address = $1', [address])
    expect(rows).toEqual([])
  })

  it('401 M_UNAUTHORIZED without a token', async () => {
    expect(outcome(await store({}, '/store-invite', ''))).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('facts S5 and S11: what strangers wrote makes neither headers nor links nor markup', async () => {
    await store({
      sender_display_name: 'Eve\r\nBcc: all@hs.test https://evil.test/x',
      room_name: '<b>Win</b> at www.evil.test or evil.test now',
      room_avatar_url: 'https://evil.test/pixel',
    })
    const text = mailText()
    expect(people.smtp.mails[0]?.to).toEqual([address])
    expect(text).not.toContain('evil.test')
    expect(text).not.toMatch(/^Bcc:/m)
    expect(text.slice(text.indexOf('text/html'))).not.toContain('<b>Win')
  })

  it.each([
    ['  two\n words ', 'two words'],
    ['x'.repeat(40), `${'x'.repeat(19)}…`],
    ['👍'.repeat(21), `${'👍'.repeat(19)}…`],
    ['see http://a.b/c ok', 'see ok'],
    ['a.com', 'a com'],
    ['v1.2 and J. Doe', 'v1.2 and J. Doe'],
    [undefined, ''],
    ['\u202eevil\u0000', 'evil'],
  ])('the name %j stands in a mail as %j', (name, expected) => {
    expect(harmlessName(name, 20)).toBe(expected)
  })
})

describe('seed 1, POST P2/sign-ed25519', () => {
  const sign = (change: object = {}, by = token) =>
    people.identity.ask('POST', '/sign-ed25519', { token: by || undefined, body: { mxid: '@new:hs.test', ...change } })

  it('200 {mxid, sender, signatures, token}, signed with the key of the mail', async () => {
    const { body: stored } = await store()
    const { status, body } = await sign({ token: stored.token, private_key: privateKey() })
    expect(status).toBe(200)
    expect(body).toEqual({
      mxid: '@new:hs.test',
      sender: SENDER,
      token: stored.token,
      signatures: { localhost: { 'ed25519:0': expect.any(String) } },
    })
    expect(verifyJson(body, 'localhost', 'ed25519:0', stored.public_keys[1])).toBe(true)
    expect(verifyJson(body, 'localhost', 'ed25519:0', stored.public_keys[0])).toBe(false)
  })

  it('facts 29: the key in either alphabet, padded or not, and with spaces for plus signs', async () => {
    const { body: stored } = await store()
    const key = privateKey()
    const spelled = [`${key}=`, key.replaceAll('+', '-').replaceAll('/', '_'), key.replaceAll('+', ' ')]
    for (const private_key of spelled) {
      const { body } = await sign({ token: stored.token, private_key })
      expect(verifyJson(body, 'localhost', 'ed25519:0', stored.public_keys[1])).toBe(true)
    }
  })

  it('facts 30: the first generation, with parameters in the query and null as the body', async () => {
    const { body: stored } = await store()
    const query = new URLSearchParams({ mxid: '@new:hs.test', token: stored.token, private_key: privateKey() })
    const answer = await people.identity.ask('POST', `${P1}/sign-ed25519?${query}`, { body: 'null' })
    expect(verifyJson(answer.body, 'localhost', 'ed25519:0', stored.public_keys[1])).toBe(true)
  })

  it('404 M_UNRECOGNIZED for a token of no invitation', async () => {
    await store()
    const private_key = privateKey()
    for (const unknown of ['x', '', '\0', 'a b', 'x'.repeat(300)]) {
      expect(outcome(await sign({ token: unknown, private_key }))).toEqual([404, 'M_UNRECOGNIZED'])
    }
  })

  it('400 for what is no key, no user, or missing', async () => {
    const { body: stored } = await store()
    const good = { token: stored.token, private_key: privateKey() }
    for (const private_key of ['', 'x', 'A'.repeat(44), '*'.repeat(43)]) {
      expect(outcome(await sign({ ...good, private_key }))).toEqual([400, 'M_INVALID_PARAM'])
    }
    expect(outcome(await sign({ ...good, mxid: 'x' }))).toEqual([400, 'M_INVALID_PARAM'])
    for (const name of ['token', 'private_key', 'mxid']) {
      expect(outcome(await sign({ ...good, [name]: undefined }))).toEqual([400, 'M_MISSING_PARAMS'])
    }
    expect(outcome(await sign(good, ''))).toEqual([401, 'M_UNAUTHORIZED'])
  })

  it('facts 27: an invitation ends with its key at the age of the configuration', async () => {
    const { body: stored } = await store()
    const good = { token: stored.token, private_key: privateKey() }
    people.server.advance(30 * DAY)
    token = await people.tokenOf(SENDER)
    expect(await isValid('ephemeral/isvalid', stored.public_keys[1])).toBe(false)
    const answer = await people.identity.ask('POST', `${P1}/sign-ed25519`, { body: { mxid: '@new:hs.test', ...good } })
    expect(outcome(answer)).toEqual([404, 'M_UNRECOGNIZED'])
  })
})
