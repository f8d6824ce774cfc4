import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Account, PASSWORD } from '../support/api.ts'
import { type Answer, type ContactPeople, type Proof, startContactPeople } from './contact-people.ts'

let people: ContactPeople
let counter = 0
let email: string
let owner: Account

beforeAll(async () => {
  people = await startContactPeople()
})
afterAll(() => people.close())
beforeEach(async () => {
  email = `forgetful${counter++}@example.org`
  owner = await people.account()
  await people.add(owner, await people.validated('account/3pid', email))
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const reset = (proof: Proof, new_password: string) =>
  people.api.request('POST', '/account/password', {
    body: { new_password, auth: { type: 'm.login.email.identity', threepid_creds: proof } },
  })
const canLogIn = async ({ userId }: Account, password: string) => {
  const identifier = { type: 'm.id.user', user: userId }
  const answer = await people.api.request('POST', '/login', {
    body: { type: 'm.login.password', identifier, password },
  })
  return answer.status === 200
}

describe('seed 2, POST C/account/password without a token, by email', () => {
  it('a session sets one password: of ten at once, one', async () => {
    const proof = await people.validated('account/password', email)
    const words = Array.from({ length: 10 }, (_, n) => `password number ${n}`)
    const answers = await Promise.all(words.map((word) => reset(proof, word)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body }) => body.errcode === 'M_THREEPID_AUTH_FAILED')).toHaveLength(9)
    expect(await canLogIn(owner, words[answers.findIndex(({ status }) => status === 200)] as string)).toBe(true)
    expect(await canLogIn(owner, PASSWORD)).toBe(false)
  })

  it('nothing happens by a link that was opened and not confirmed', async () => {
    const { body } = await people.requestEmail('account/password', email, { client_secret: 'only.opened' })
    const url = people.link()
    await fetch(people.server.baseUrl + url.pathname + url.search)
    expect(outcome(await reset({ sid: body.sid, client_secret: 'only.opened' }, 'the attacker’s'))).toEqual([
      401,
      'M_UNAUTHORIZED',
    ])
    expect(await canLogIn(owner, PASSWORD)).toBe(true)
  })

  it('403 M_THREEPID_AUTH_FAILED when the address is nobody’s any more', async () => {
    const proof = await people.validated('account/password', email)
    const body = { medium: 'email', address: email }
    await people.api.call('POST', '/account/3pid/delete', { token: owner.token, body })
    expect(outcome(await reset(proof, 'a new password'))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await canLogIn(owner, PASSWORD)).toBe(true)
  })

  it('who had an address before its owner opens neither account: 403 M_THREEPID_AUTH_FAILED', async () => {
    const proof = await people.validated('account/password', email)
    const body = { medium: 'email', address: email }
    await people.api.call('POST', '/account/3pid/delete', { token: owner.token, body })
    const next = await people.account()
    await people.add(next, await people.validated('account/3pid', email))
    expect(outcome(await reset(proof, 'a new password'))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await canLogIn(owner, PASSWORD)).toBe(true)
    expect(await canLogIn(next, PASSWORD)).toBe(true)
    expect((await reset(await people.validated('account/password', email), 'a new password')).status).toBe(200)
    expect(await canLogIn(next, 'a new password')).toBe(true)
  })

  it.each(['register', 'account/3pid'])('what was validated for %s sets no password', async (place) => {
    await people.api.call('POST', '/account/3pid/delete', {
      token: owner.token,
      body: { medium: 'email', address: email },
    })
    const proof = await people.validated(place, email)
    await people.add(owner, await people.validated('account/3pid', email))
    expect(outcome(await reset(proof, 'a new password'))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await canLogIn(owner, PASSWORD)).toBe(true)
  })

  it('a password that is too weak is refused before the session is used', async () => {
    const proof = await people.validated('account/password', email)
    expect((await reset(proof, 'x')).body.errcode).toBe('M_WEAK_PASSWORD')
    expect((await reset(proof, 'a new password')).status).toBe(200)
  })
})
