import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Api, type Json, PASSWORD } from '../support/api.ts'
import { type Answer, type ContactPeople, type Proof, startContactPeople } from './contact-people.ts'

const EMAIL = 'm.login.email.identity'
const MSISDN = 'm.login.msisdn'

let people: ContactPeople
let counter = 0
let username: string
let email: string

beforeAll(async () => {
  people = await startContactPeople({ registration: { email: 'required' } })
})
afterAll(() => people.close())
beforeEach(() => {
  counter++
  username = `newcomer${counter}`
  email = `newcomer${counter}@example.org`
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const ask = (auth: object | undefined, name = username, api: Api = people.api, path = '/register') =>
  api.request('POST', path, { body: { username: name, password: PASSWORD, ...(auth && { auth }) } })
const creds = ({ sid, client_secret }: Proof, session?: string) => ({
  ...{ type: EMAIL, threepid_creds: { sid, client_secret } },
  ...(session && { session }),
})
const listed = async (body: Json) =>
  (await people.api.call('GET', '/account/3pid', { token: body.access_token })).threepids
const isTaken = async (name: string) =>
  (await people.api.request('GET', `/register/available?username=${name}`)).body.errcode === 'M_USER_IN_USE'

describe('seed 2: registration with an email address that is required', () => {
  it.each(['/register', '/_proto/client/r0/register'])(
    '%s: the stage is polled until the link was followed, and the account has the address',
    async (path) => {
      const { status, body } = await ask(undefined, username, people.api, path)
      expect([status, body.flows]).toEqual([401, [{ stages: [EMAIL] }]])
      const begun = await people.requestEmail('register', email, { client_secret: `reg${counter}` })
      const auth = creds({ sid: begun.body.sid, client_secret: `reg${counter}` }, body.session)
      const waiting = await ask(auth, username, people.api, path)
      expect(waiting).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED', session: body.session } })
      expect(await isTaken(username)).toBe(false)
      await people.follow()
      const done = await ask({ session: body.session }, username, people.api, path)
      expect(done).toMatchObject({ status: 200, body: { user_id: `@${username}:localhost` } })
      expect(await listed(done.body)).toEqual([
        { medium: 'email', address: email, validated_at: expect.any(Number), added_at: expect.any(Number) },
      ])
    },
  )

  it('a request never succeeds without auth, and neither by another stage', async () => {
    expect((await ask(undefined)).status).toBe(401)
    expect(outcome(await ask({ type: 'm.login.dummy' }))).toEqual([401, 'M_UNRECOGNIZED'])
    expect(await isTaken(username)).toBe(false)
  })

  it('one validated session makes one account, of ten at once and ever after', async () => {
    const proof = await people.validated('register', email)
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(creds(proof), `${username}.${n}`)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body }) => body.errcode === 'M_THREEPID_AUTH_FAILED')).toHaveLength(9)
    expect(outcome(await ask(creds(proof), `${username}.late`))).toEqual([401, 'M_THREEPID_AUTH_FAILED'])
  })

  it('one address makes one account: ten who all validated it at once', async () => {
    const proofs: Proof[] = []
    for (let n = 0; n < 10; n++) proofs.push(await people.validated('register', email))
    const answers = await Promise.all(proofs.map((proof, n) => ask(creds(proof), `${username}.${n}`)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ body }) => body.errcode === 'M_THREEPID_IN_USE')).toHaveLength(9)
    const taken = await Promise.all(proofs.map((_, n) => isTaken(`${username}.${n}`)))
    expect(taken.filter(Boolean)).toHaveLength(1)
  })

  it('a session for an address of an account makes none: 403 M_THREEPID_AUTH_FAILED', async () => {
    const proof = await people.validated('account/3pid', email)
    expect(outcome(await ask(creds(proof)))).toEqual([403, 'M_THREEPID_AUTH_FAILED'])
    expect(await isTaken(username)).toBe(false)
  })

  it('the address is free again once its owner takes it from the account', async () => {
    const first = await ask(creds(await people.validated('register', email)))
    expect(outcome(await people.requestEmail('register', email))).toEqual([400, 'M_THREEPID_IN_USE'])
    const { access_token: token } = first.body
    await people.api.call('POST', '/account/3pid/delete', { token, body: { medium: 'email', address: email } })
    const second = await ask(creds(await people.validated('register', email)), `${username}.again`)
    expect(second.status).toBe(200)
  })
})

describe('registration with both, where the operator asks for both', () => {
  it('stages in order: number, then email; both are the account’s', async () => {
    const both = await startContactPeople({ registration: { email: 'required', msisdn: 'required' } })
    const { body } = await ask(undefined, username, both.api)
    expect(body.flows).toEqual([{ stages: [MSISDN, EMAIL] }])
    const { session } = body
    const proof = await both.validated('register', email)
    expect(outcome(await ask(creds(proof, session), username, both.api))).toEqual([401, 'M_UNAUTHORIZED'])
    const sms = await both.requestNumber('register', '07400 600001', { client_secret: 'both' })
    const number = { sid: sms.body.sid, client_secret: 'both' }
    await both.api.call('POST', new URL(sms.body.submit_url).pathname, { body: { ...number, token: both.code() } })
    const half = await ask({ ...creds(number, session), type: MSISDN }, username, both.api)
    expect(half).toMatchObject({ status: 401, body: { completed: [MSISDN] } })
    const done = await ask(creds(proof, session), username, both.api)
    expect(done.status).toBe(200)
    const { threepids } = await both.api.call('GET', '/account/3pid', { token: done.body.access_token })
    expect(threepids.map(({ address }: Json) => address).sort()).toEqual(['447400600001', email].sort())
    await both.close()
  })

  it('where it is optional, an account is made without', async () => {
    const free = await startContactPeople({ registration: { email: 'optional' } })
    const { body } = await ask(undefined, username, free.api)
    expect(body.flows).toEqual([{ stages: ['m.login.dummy'] }, { stages: [EMAIL] }])
    expect((await ask({ type: 'm.login.dummy' }, username, free.api)).status).toBe(200)
    await free.close()
  })
})
