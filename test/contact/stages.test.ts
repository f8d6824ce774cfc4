import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { UiaOutcome } from '../../src/domain/accounts/interactive-auth.ts'
import { type ContactPeople, type Proof, startContactPeople } from './contact-people.ts'

const HOUR = 3_600_000
const EMAIL = 'm.login.email.identity'
const MSISDN = 'm.login.msisdn'

let people: ContactPeople
let counter = 0
let email: string

beforeAll(async () => {
  people = await startContactPeople()
})
afterAll(() => people.close())
beforeEach(() => {
  email = `stage${counter++}@example.org`
})

type Auth = JsonObject | undefined

/** One request whose flow is `stages`, again and again. */
function request(stages: readonly string[] = [EMAIL, 'm.login.dummy'], name = randomBytes(4).toString('hex')) {
  return (auth: Auth): Promise<UiaOutcome> =>
    people.server.services.interactiveAuth.advance({
      ...{ operation: `POST C/test/${name}`, requester: undefined, address: 'here', body: { n: name } },
      ...{ auth, flows: [stages] },
    })
}

const challengeOf = (outcome: UiaOutcome): JsonObject => ('challenge' in outcome ? outcome.challenge : { done: true })
const completedIn = async (outcome: Promise<UiaOutcome>) => challengeOf(await outcome).completed
const errcodeIn = async (outcome: Promise<UiaOutcome>) => challengeOf(await outcome).errcode
const begin = async (ask: (auth: Auth) => Promise<UiaOutcome>) => challengeOf(await ask(undefined)).session as string
const creds = (proof: Proof, session: string, type = EMAIL): JsonObject => ({
  ...{ type, session },
  threepid_creds: { ...proof },
})

async function requested(place = 'register'): Promise<Proof> {
  const client_secret = `stage.${randomBytes(6).toString('hex')}`
  const { status, body } = await people.requestEmail(place, email, { client_secret })
  expect(status).toBe(200)
  return { sid: body.sid, client_secret }
}

describe('seed 2, Authentication 3 and 4: m.login.email.identity', () => {
  it('waits for the link: M_UNAUTHORIZED to be tried again, then the stage is completed and tells what was shown', async () => {
    const proof = await requested()
    const ask = request()
    const session = await begin(ask)
    const before = challengeOf(await ask(creds(proof, session)))
    expect(before).toMatchObject({ errcode: 'M_UNAUTHORIZED', session, flows: [{ stages: [EMAIL, 'm.login.dummy'] }] })
    expect(before.completed).toEqual([])
    await people.follow()
    expect(await completedIn(ask(creds(proof, session)))).toEqual([EMAIL])
    expect(await ask({ type: 'm.login.dummy', session })).toEqual({
      proof: {
        [EMAIL]: { medium: 'email', address: email, validated_at: expect.any(Number), purpose: 'register' },
        'm.login.dummy': {},
      },
    })
  })

  it('is polled with the session alone, once the creds were sent', async () => {
    const proof = await requested()
    const ask = request()
    const session = await begin(ask)
    expect(await completedIn(ask({ session }))).toEqual([])
    await ask(creds(proof, session))
    expect(await completedIn(ask({ session }))).toEqual([])
    await people.follow()
    expect(await completedIn(ask({ session }))).toEqual([EMAIL])
    expect(await completedIn(ask({ session }))).toEqual([EMAIL])
  })

  it('is not polled into being by a link that belongs to another authentication', async () => {
    const [mine, other] = [request(), request()]
    const [session, elsewhere] = [await begin(mine), await begin(other)]
    const proof = await requested()
    await mine(creds(proof, session))
    await people.follow()
    expect(await completedIn(other({ session: elsewhere }))).toEqual([])
    expect(await completedIn(mine({ session }))).toEqual([EMAIL])
  })

  it('the last stage of a flow answers the request itself, by creds and by the session alone', async () => {
    for (const last of ['creds', 'session']) {
      const ask = request([EMAIL])
      const session = await begin(ask)
      const proof = await requested()
      await ask(creds(proof, session))
      await people.follow()
      const outcome = await ask(last === 'creds' ? creds(proof, session) : { session })
      expect(outcome).toMatchObject({ proof: { [EMAIL]: { address: email } } })
    }
  })

  it('polling is not limited as guessing is: 200 polls with creds, and the link still counts', async () => {
    const proof = await requested()
    const ask = request()
    const session = await begin(ask)
    for (let n = 0; n < 200; n++) expect(await errcodeIn(ask(creds(proof, session)))).toBe('M_UNAUTHORIZED')
    await people.follow()
    expect(await completedIn(ask(creds(proof, session)))).toEqual([EMAIL])
  })

  it('reads threepidCreds, and passes over id_server', async () => {
    const proof = await requested()
    await people.follow()
    const ask = request()
    const session = await begin(ask)
    const auth = {
      type: EMAIL,
      session,
      threepidCreds: { ...proof, id_server: 'untrusted.example', id_access_token: 'x' },
    }
    expect(await completedIn(ask(auth))).toEqual([EMAIL])
  })

  it.each<[JsonObject, string]>([
    [{}, 'M_MISSING_PARAM'],
    [{ threepid_creds: 'x' }, 'M_MISSING_PARAM'],
    [{ threepid_creds: [] }, 'M_MISSING_PARAM'],
    [{ threepid_creds: { sid: 'x' } }, 'M_MISSING_PARAM'],
    [{ threepid_creds: { sid: 1, client_secret: 'x' } }, 'M_MISSING_PARAM'],
    [{ threepid_creds: { sid: 'x\n', client_secret: 'x' } }, 'M_INVALID_PARAM'],
    [{ threepid_creds: { sid: 'x', client_secret: 'x'.repeat(256) } }, 'M_INVALID_PARAM'],
    [{ threepid_creds: { sid: 'x\u0000', client_secret: 'x' } }, 'M_INVALID_PARAM'],
    [{ threepid_creds: { sid: 'unknown', client_secret: 'x' } }, 'M_THREEPID_AUTH_FAILED'],
  ])('bad input %j: %s in the challenge', async (sent, errcode) => {
    const ask = request()
    const session = await begin(ask)
    expect(await errcodeIn(ask({ type: EMAIL, session, ...sent }))).toBe(errcode)
    expect(await completedIn(ask({ session }))).toEqual([])
  })

  it('M_THREEPID_AUTH_FAILED for a wrong secret, an expired session, one of a number, one of the identity service', async () => {
    const proof = await requested()
    await people.follow()
    const ask = request()
    const session = await begin(ask)
    expect(await errcodeIn(ask(creds({ ...proof, client_secret: 'wrong' }, session)))).toBe('M_THREEPID_AUTH_FAILED')
    const account = await people.account(`stage${counter}`)
    const token = await people.identityToken(account)
    const begun = { client_secret: 'abc', email, send_attempt: 1 }
    const { sid } = await people.api.call('POST', '/_matrix/identity/v2/validate/email/requestToken', {
      token,
      body: begun,
    })
    await people.follow()
    expect(await errcodeIn(ask(creds({ sid, client_secret: 'abc' }, session)))).toBe('M_THREEPID_AUTH_FAILED')

    const sms = await people.requestNumber('register', '07400 200001', { client_secret: 'def' })
    const number = { sid: sms.body.sid, client_secret: 'def' }
    await people.api.call('POST', new URL(sms.body.submit_url).pathname, { body: { ...number, token: people.code() } })
    expect(await errcodeIn(ask(creds(number, session)))).toBe('M_THREEPID_AUTH_FAILED')

    people.server.advance(25 * HOUR)
    const late = request()
    expect(await errcodeIn(late(creds(proof, await begin(late))))).toBe('M_THREEPID_AUTH_FAILED')
  })
})

describe('a validated session is used once', () => {
  it('by one authentication, which may show it again; by no other', async () => {
    const proof = await requested()
    await people.follow()
    const [first, second] = [request(), request()]
    const [one, two] = [await begin(first), await begin(second)]
    expect(await completedIn(first(creds(proof, one)))).toEqual([EMAIL])
    expect(await completedIn(first(creds(proof, one)))).toEqual([EMAIL])
    expect(await errcodeIn(second(creds(proof, two)))).toBe('M_THREEPID_AUTH_FAILED')
    expect(await completedIn(second({ session: two }))).toEqual([])
  })

  it('one that was only shown, and not yet validated, may be shown to another', async () => {
    const proof = await requested()
    const [first, second] = [request(), request()]
    await first(creds(proof, await begin(first)))
    await people.follow()
    expect(await completedIn(second(creds(proof, await begin(second))))).toEqual([EMAIL])
  })

  it('by exactly one of 30 authentications at once', async () => {
    const proof = await requested()
    await people.follow()
    const asks = Array.from({ length: 30 }, () => request())
    const sessions = await Promise.all(asks.map(begin))
    const answers = await Promise.all(asks.map((ask, n) => ask(creds(proof, sessions[n] as string))))
    expect(
      answers.map((answer) => challengeOf(answer).completed).filter((done) => (done as string[]).length > 0),
    ).toHaveLength(1)
  })

  it('30 polls of one authentication at once complete it', async () => {
    const proof = await requested()
    await people.follow()
    const ask = request()
    const session = await begin(ask)
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(creds(proof, session))))
    expect(answers.map((answer) => challengeOf(answer).completed)).toEqual(Array(30).fill([EMAIL]))
  })

  it('without a session of the authentication too', async () => {
    const proof = await requested()
    await people.follow()
    const ask = request([EMAIL])
    const auth = { type: EMAIL, threepid_creds: { ...proof } }
    expect(await ask(auth)).toMatchObject({ proof: { [EMAIL]: { address: email } } })
    expect(await errcodeIn(ask(auth))).toBe('M_THREEPID_AUTH_FAILED')
  })

  it('what was used is forgotten when no session of that time can be good', async () => {
    const proof = await requested()
    await people.follow()
    const ask = request()
    await ask(creds(proof, await begin(ask)))
    const { contactChore } = await import('../../src/domain/contact/contact-services.ts')
    const chore = contactChore(people.server.services.config)
    const { db, services } = people.server
    const count = async () => (await db.query('SELECT 1 FROM contact_proof WHERE sid = $1', [proof.sid])).length
    await db.tx((tx) => chore(tx, services.clock.now() + 47 * HOUR, 1_000))
    expect(await count()).toBe(1)
    await db.tx((tx) => chore(tx, services.clock.now() + 49 * HOUR, 1_000))
    expect(await count()).toBe(0)
  })
})

describe('m.login.msisdn', () => {
  it('is completed by the code that was submitted to submit_url', async () => {
    const { body } = await people.requestNumber('register', '07400 300001', { client_secret: 'msisdn' })
    const proof = { sid: body.sid, client_secret: 'msisdn' }
    const ask = request([MSISDN, 'm.login.dummy'])
    const session = await begin(ask)
    expect(await errcodeIn(ask(creds(proof, session, MSISDN)))).toBe('M_UNAUTHORIZED')
    await people.api.call('POST', new URL(body.submit_url).pathname, { body: { ...proof, token: people.code() } })
    expect(await completedIn(ask({ session }))).toEqual([MSISDN])
    expect(await ask({ type: 'm.login.dummy', session })).toMatchObject({
      proof: { [MSISDN]: { medium: 'msisdn', address: '447400300001', purpose: 'register' } },
    })
  })
})

describe('nothing secret is kept or said', () => {
  it('neither tokens nor client secrets nor sessions of authentications are in the database; no address is in the log', async () => {
    const proof = await requested()
    const ask = request()
    const session = await begin(ask)
    await ask(creds(proof, session))
    const token = people.link().searchParams.get('token') as string
    await people.follow()
    const rows = JSON.stringify([
      await people.server.db.query('SELECT * FROM identity_session'),
      await people.server.db.query('SELECT * FROM contact_proof'),
    ])
    expect(rows).toContain(proof.sid)
    for (const secret of [proof.client_secret, token, session]) expect(rows).not.toContain(secret)
    for (const secret of [proof.client_secret, token, email]) expect(people.server.logged()).not.toContain(secret)
  })
})
