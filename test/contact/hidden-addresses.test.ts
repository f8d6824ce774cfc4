import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { waitUntil } from '../support/wait.ts'
import { type Answer, type ContactPeople, startContactPeople } from './contact-people.ts'

const OWNED = 'owned@example.org'
const outcome = ({ status, body }: Answer) => [status, body.errcode]

let people: ContactPeople

async function open(contact: object, registration: object) {
  people = await startContactPeople({ contact, registration })
  people.smtp.mails.length = 0
}

const mailed = () => people.smtp.mails.flatMap(({ to }) => to)

describe('where it is hidden whether an address is known', () => {
  beforeAll(async () => {
    await open({ hide_known: true }, { enabled: true })
    const owner = await people.account('owner')
    const { body } = await people.requestEmail('account/3pid', OWNED, { client_secret: 'owned' })
    await waitUntil('the mail', () => mailed().length > 0)
    await people.follow()
    await people.add(owner, { sid: body.sid, client_secret: 'owned' })
    expect(await people.listed(owner)).toHaveLength(1)
  })
  afterAll(() => people.close())
  beforeEach(() => {
    people.smtp.mails.length = 0
    people.refuseMails(null)
  })

  test.each([
    ['account/password', OWNED, 'nobodys@example.org'],
    ['register', 'new@example.org', OWNED],
    ['account/3pid', 'mine@example.org', OWNED],
  ])('D5: %s answers alike, and mails where it makes sense alone', async (place, fit, unfit) => {
    const answers = [await people.requestEmail(place, unfit), await people.requestEmail(place, fit)]
    for (const answer of answers) {
      expect(answer).toEqual({ status: 200, body: { sid: expect.stringMatching(/^[\w-]{24}$/) } })
    }
    await waitUntil('the mail', () => mailed().length > 0)
    expect(mailed()).toEqual([fit])
  })

  test('D5: a session that nobody was mailed about is told from none other by what is tried with it', async () => {
    const ask = async (email: string, secret: string) => {
      const { body } = await people.requestEmail('account/password', email, { client_secret: secret })
      const again = await people.requestEmail('account/password', email, { client_secret: secret })
      expect(again.body.sid).toBe(body.sid)
      const auth = { type: 'm.login.email.identity', threepid_creds: { sid: body.sid, client_secret: secret } }
      return people.api.request('POST', '/account/password', { body: { new_password: 'a new password', auth } })
    }
    const [known, unknown] = [await ask(OWNED, 'first'), await ask('nobodys@example.org', 'second')]
    expect(outcome(unknown)).toEqual(outcome(known))
    expect(unknown.body.error).toBe(known.body.error)
  })

  test('D5: a mail server that refuses tells nothing either', async () => {
    people.refuseMails(new Error('no such mailbox'))
    const answers = [
      await people.requestEmail('account/password', OWNED),
      await people.requestEmail('account/password', 'nobodys@example.org'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
  })

  test('D5: numbers are answered alike too', async () => {
    const { status, body } = await people.requestNumber('account/password', '07400 100001')
    expect([status, Object.keys(body).sort()]).toEqual([200, ['intl_fmt', 'msisdn', 'sid', 'submit_url']])
    expect(people.gateway.requests).toEqual([])
  })
})

describe('by default', () => {
  test('D5: it is hidden where registration is closed', async () => {
    await open({}, { enabled: false })
    expect((await people.requestEmail('account/password', 'nobodys@example.org')).status).toBe(200)
    expect(mailed()).toEqual([])
    await people.close()
  })

  test('D5: it is told where registration is open, or the operator says so', async () => {
    for (const [contact, enabled] of [
      [{}, true],
      [{ hide_known: false }, false],
    ] as const) {
      await open(contact, { enabled })
      const answer = await people.requestEmail('account/password', 'nobodys@example.org')
      expect(outcome(answer)).toEqual([400, 'M_THREEPID_NOT_FOUND'])
      await people.close()
    }
  })
})
