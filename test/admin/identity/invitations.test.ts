import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { upsertBinding } from '../../../src/store/identity/bindings.ts'
import { handOverInvites, postponeDelivery } from '../../../src/store/identity/invites.ts'
import type { Json } from '../../support/api.ts'
import { runProgramHere } from '../../support/run-hearth.ts'
import { type Office, openOffice } from '../office.ts'

const AT = '/_hearth/admin/v1/identity/invitations'
const P1 = '/_matrix/identity/api/v1'
const P2 = '/_matrix/identity/v2'
const ROOM = '!sofas:hs.test'
const SENDER = '@sam:hs.test'

let office: Office
beforeAll(async () => {
  office = await openOffice({ identity: { invites: { lifetime_days: 30 } } })
})
afterAll(() => office.close())

const invite = (address: string): Promise<Json> =>
  office.api.call('POST', `${P1}/store-invite`, { body: { medium: 'email', address, room_id: ROOM, sender: SENDER } })
const list = async (query = ''): Promise<Json[]> => (await office.call('GET', AT + query)).invitations
const found = async (address: string): Promise<Json> => (await list()).find((one) => one.address === address)
const isValid = async (key: string): Promise<boolean> =>
  (await office.api.call('GET', `${P2}/pubkey/ephemeral/isvalid?public_key=${encodeURIComponent(key)}`)).valid
const sign = (token: string) =>
  office.api.request('POST', `${P1}/sign-ed25519`, {
    body: { mxid: '@who:hs.test', token, private_key: Buffer.alloc(32).toString('base64') },
  })

/** Binds an address; nobody is told of its invitations yet. */
async function hold(address: string): Promise<number> {
  const binding = { medium: 'email', address, user_id: '@owner:elsewhere.test' as never, bound_at: 1 }
  await office.server.database.db.tx(async (tx) => {
    await upsertBinding(tx, binding)
    await handOverInvites(tx, { ...binding, association: '{}', now: Date.now() + 3_600_000 })
  })
  const [row] = await office.server.database.db.query<{ nid: number }>(
    'SELECT delivery_nid AS nid FROM identity_delivery WHERE address = $1',
    [address],
  )
  return row!.nid
}

test('what nobody has taken up is listed, with where it stands', async () => {
  const before = Date.now()
  await invite('waiting@example.org')
  const waiting = await found('waiting@example.org')
  expect(waiting).toEqual({
    ...{ id: expect.any(Number), medium: 'email', address: 'waiting@example.org', room_id: ROOM, sender: SENDER },
    ...{ created_ts: expect.any(Number), expires_ts: waiting.created_ts + 30 * 86_400_000 },
    ...{ state: 'waiting', bound_to: null, attempts: 0 },
  })
  expect(waiting.created_ts).toBeGreaterThanOrEqual(before)
  const delivery = await hold('waiting@example.org')
  expect(await found('waiting@example.org')).toMatchObject({ state: 'delivering', bound_to: '@owner:elsewhere.test' })
  await office.server.database.db.tx((tx) => postponeDelivery(tx, delivery, undefined))
  expect(await found('waiting@example.org')).toMatchObject({ state: 'undeliverable' })
})

test('one that is cancelled is good for nothing: neither its token nor its key, nor is it delivered', async () => {
  const { token, public_keys } = await invite('cancelled@example.org')
  const key = public_keys[1].public_key ?? public_keys[1]
  expect([await isValid(key), (await sign(token)).status]).toEqual([true, 200])
  const { id } = await found('cancelled@example.org')
  expect(await office.call('DELETE', `${AT}/${id}`)).toEqual({})
  expect(await found('cancelled@example.org')).toBeUndefined()
  expect([await isValid(key), (await sign(token)).status]).toEqual([false, 404])
  expect(await office.ask('DELETE', `${AT}/${id}`)).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  const binding = { medium: 'email', address: 'cancelled@example.org', user_id: '@o:e.test' as never, bound_at: 1 }
  const { db } = office.server.database
  expect(await db.tx((tx) => handOverInvites(tx, { ...binding, association: '{}', now: Date.now() }))).toBe(false)
})

test('one that waits for its homeserver can be cancelled; one that was taken or has ended is none', async () => {
  const { db } = office.server.database
  for (const name of ['bound', 'taken', 'ended']) await invite(`${name}@example.org`)
  await hold('bound@example.org')
  const [bound, taken, ended] = [
    await found('bound@example.org'),
    await found('taken@example.org'),
    await found('ended@example.org'),
  ]
  await office.call('DELETE', `${AT}/${bound.id}`)
  await db.query('UPDATE identity_invite SET delivered_at = 1 WHERE invite_nid = $1', [taken.id])
  await db.query('UPDATE identity_invite SET expires_at = 1 WHERE invite_nid = $1', [ended.id])
  for (const { address } of [bound, taken, ended]) expect(await found(address)).toBeUndefined()
  expect((await office.ask('DELETE', `${AT}/${taken.id}`)).status).toBe(404)
})

test('the list comes in pages', async () => {
  for (let n = 0; n < 5; n++) await invite(`page${n}@example.org`)
  const whole = (await list()).map(({ id }) => id)
  const paged: number[] = []
  for (let from: number | undefined = 0; from !== undefined; ) {
    const page: Json = await office.call('GET', `${AT}?limit=2&from=${from}`)
    expect(page.invitations.length).toBeLessThanOrEqual(2)
    paged.push(...page.invitations.map(({ id }: Json) => id))
    from = page.next_from
  }
  expect(paged).toEqual(whole)
})

test('for administrators alone, on the record', async () => {
  const { token } = await office.person('curious')
  for (const [method, path] of [
    ['GET', AT],
    ['DELETE', `${AT}/1`],
  ] as const) {
    expect((await office.ask(method, path, undefined, token)).status).toBe(403)
  }
  for (const id of ['x', '-1', '9'.repeat(30), '%00'])
    expect((await office.ask('DELETE', `${AT}/${id}`)).status).toBeGreaterThanOrEqual(400)
  const { acts } = await office.call('GET', '/_hearth/admin/v1/acts')
  expect(acts.map(({ act }: Json) => act)).toEqual(expect.arrayContaining([`GET ${AT}`, `DELETE ${AT}/{invitationId}`]))
})

test('hearth identity invitations lists and cancels, beside a server', async () => {
  await invite('verb@example.org')
  const env = { HEARTH__DATA_DIR: '.', HEARTH__DATABASE__URL: office.server.database.url }
  const directory = await mkdtemp(join(tmpdir(), 'hearth-invitations-'))
  const run = (...words: string[]) => runProgramHere(['identity', 'invitations', ...words], { directory, env })
  const { id } = await found('verb@example.org')
  expect((await run()).stdout).toMatch(new RegExp(`^${id} .* waiting +verb@example\\.org +${SENDER} +${ROOM}`, 'm'))
  expect(JSON.parse((await run('--json')).stdout)).toContainEqual(await found('verb@example.org'))
  expect(await run('--cancel', `${id}`)).toMatchObject({ code: 0, stdout: 'The invitation is cancelled.\n' })
  expect(await found('verb@example.org')).toBeUndefined()
  expect(await run('--cancel', `${id}`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no such invitation'),
  })
  expect(await run('--cancel', 'all')).toMatchObject({ code: 2 })
  await rm(directory, { recursive: true })
  const { acts } = await office.call('GET', '/_hearth/admin/v1/acts?limit=3&actor=command%20line')
  expect(acts[0]).toMatchObject({ act: 'identity invitations --cancel', target: `${id}`, outcome: 'M_NOT_FOUND' })
})
