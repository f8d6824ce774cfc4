import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Office, openOffice } from '../office.ts'

let office: Office
beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())

const CANARY = 'canary-password-4711'

const acts = async (query = '') => (await office.call('GET', `/_hearth/admin/v1/acts${query}`)).acts

test('an act tells who, when, what, on whom and how it ended', async () => {
  const alice = await office.person('alice')
  const before = Date.now()
  await office.call('POST', `/v1/reset_password/${alice.userId}`, { new_password: CANARY })
  await office.ask('POST', `/v1/reset_password/${alice.userId}`, { new_password: 'x' })
  const [failed, done] = await acts('?limit=2')
  expect(done).toEqual({
    act_nid: expect.any(Number),
    at: expect.any(Number),
    actor: office.boss.userId,
    act: 'POST /_synapse/admin/v1/reset_password/{userId}',
    target: alice.userId,
    outcome: 'done',
  })
  expect(done.at).toBeGreaterThanOrEqual(before)
  expect(failed.outcome).toBe('M_WEAK_PASSWORD')
})

test('to read what is a user’s own is an act, to read a list is none', async () => {
  const bob = await office.person('bob')
  const [newest] = await acts('?limit=1')
  await office.call('GET', '/v2/users')
  await office.call('GET', `/v2/users/${bob.userId}`)
  expect(await acts('?limit=1')).toEqual([newest])
  await office.call('GET', `/v1/users/${bob.userId}/accountdata`)
  expect(await acts('?limit=1')).toMatchObject([{ target: bob.userId, outcome: 'done' }])
})

test('the record comes in pages, newest first, of one actor or about one target', async () => {
  const carol = await office.person('carol')
  for (const admin of [true, false, true]) await office.call('PUT', `/v1/users/${carol.userId}/admin`, { admin })
  const own = await office.ask('PUT', `/v1/users/${carol.userId}/admin`, { admin: true }, carol.token)
  expect(own.status).toBe(200)
  const about = await acts(`?target=${carol.userId}`)
  expect(about).toHaveLength(4)
  expect(await acts(`?actor=${carol.userId}`)).toEqual([about[0]])
  const first = await office.call('GET', `/_hearth/admin/v1/acts?target=${carol.userId}&limit=3`)
  const second = await office.call('GET', `/_hearth/admin/v1/acts?target=${carol.userId}&before=${first.next_before}`)
  expect([...first.acts, ...second.acts]).toEqual(about)
  expect((await office.ask('GET', '/_hearth/admin/v1/acts?actor=%00')).status).toBe(400)
})

test('no secret is in it', async () => {
  const { token } = await office.call('POST', '/v1/registration_tokens/new', { token: 'token-canary-4712' })
  await office.call('PUT', `/v1/registration_tokens/${token}`, { uses_allowed: 1 })
  const [act] = await acts('?limit=1')
  expect(act.target).toBe('toke...')
  const rows = await office.server.database.db.query('SELECT * FROM admin_act')
  expect(JSON.stringify(rows)).not.toMatch(/canary/)
})

test('an act that cannot be written down is not done', async () => {
  const dora = await office.person('dora')
  const { db } = office.server.database
  await db.tx((tx) => tx.query('ALTER TABLE admin_act RENAME TO admin_act_away'))
  try {
    expect((await office.ask('PUT', `/v1/users/${dora.userId}/admin`, { admin: true })).status).toBe(500)
  } finally {
    await db.tx((tx) => tx.query('ALTER TABLE admin_act_away RENAME TO admin_act'))
  }
  expect(await office.call('GET', `/v1/users/${dora.userId}/admin`)).toEqual({ admin: false })
})
