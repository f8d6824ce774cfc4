import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Json, login, PASSWORD } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office

const enc = encodeURIComponent
const AT = '/_hearth/admin/v1/approvals'
const whoami = ({ token }: Account) => office.api.request('GET', '/account/whoami', { token })
const decide = (who: Account, verb: string, token?: string) =>
  office.ask('POST', `${AT}/${enc(who.userId)}/${verb}`, undefined, token)

beforeAll(async () => {
  office = await openOffice({ registration: { approval: true } })
})

afterAll(() => office.close())

test('who registers waits until an operator lets them in', async () => {
  const [alice, bob] = [await office.person('alice'), await office.person('bob')]
  expect((await whoami(alice)).body.errcode).toBe('M_USER_LOCKED')
  const { accounts, total } = await office.call('GET', AT)
  expect([total, accounts.map(({ user_id }: Json) => user_id)]).toEqual([2, [alice.userId, bob.userId]])
  const page = await office.call('GET', `${AT}?limit=1`)
  expect([page.accounts.length, page.next_token]).toEqual([1, 1])
  expect((await decide(alice, 'approve', alice.token)).status).toBe(403)
  expect((await decide(alice, 'approve')).status).toBe(200)
  expect((await whoami(alice)).status).toBe(200)
  expect((await decide(alice, 'approve')).status).toBe(409)
  expect((await decide(alice, 'refuse')).status).toBe(409)
  expect((await decide(alice, 'approve', alice.token)).status).toBe(403)
  expect((await decide(bob, 'refuse')).status).toBe(200)
  await expect(login(office.api, 'bob')).rejects.toThrow()
  expect((await office.call('GET', `/v2/users/${enc(bob.userId)}`)).deactivated).toBe(true)
  expect((await office.call('GET', AT)).total).toBe(0)
  const { acts } = await office.call('GET', `/_hearth/admin/v1/acts?target=${enc(bob.userId)}`)
  expect(acts[0]).toMatchObject({ act: 'POST /_hearth/admin/v1/approvals/{userId}/refuse', outcome: 'done' })
})

test('of two operators at once, one decides', async () => {
  const carol = await office.person('carol')
  const answers = await Promise.all([decide(carol, 'approve'), decide(carol, 'refuse')])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409])
  const isIn = answers[0]!.status === 200
  expect((await office.call('GET', `/v2/users/${enc(carol.userId)}`)).deactivated).toBe(!isIn)
})

test('a guest who becomes a user waits too', async () => {
  const guest = await office.api.call('POST', '/register?kind=guest', { body: {} })
  const username = guest.user_id.slice(1).split(':')[0]
  const body = { username, password: PASSWORD, guest_access_token: guest.access_token }
  const { session } = (await office.api.request('POST', '/register', { body })).body
  const kept = await office.api.call('POST', '/register', {
    body: { ...body, auth: { type: 'm.login.dummy', session } },
  })
  const { status, body: answer } = await office.api.request('GET', '/account/whoami', { token: kept.access_token })
  expect([status, answer.errcode]).toEqual([401, 'M_USER_LOCKED'])
  expect((await office.call('GET', AT)).accounts.map(({ user_id }: Json) => user_id)).toEqual([guest.user_id])
  await office.call('POST', `${AT}/${enc(guest.user_id)}/approve`)
  expect((await office.api.request('GET', '/account/whoami', { token: kept.access_token })).status).toBe(200)
})

test('a refusal that breaks off leaves the account waiting, and not locked for ever', async () => {
  const dave = await office.person('dave')
  const { db } = office.server.database
  await db.tx(async (tx) => {
    await tx.query(
      `CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$a crash$$; END'`,
    )
    await tx.query('CREATE TRIGGER broken BEFORE INSERT ON deactivation FOR EACH ROW EXECUTE FUNCTION break_off()')
  })
  expect((await decide(dave, 'refuse')).status).toBe(500)
  expect((await office.call('GET', AT)).accounts.map(({ user_id }: Json) => user_id)).toEqual([dave.userId])
  await db.tx((tx) => tx.query('DROP TRIGGER broken ON deactivation'))
  expect((await decide(dave, 'refuse')).status).toBe(200)
  expect((await office.call('GET', AT)).total).toBe(0)
})
