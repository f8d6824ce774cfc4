import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import type { Browsing, Page } from '../support/browsing.ts'
import { type OauthWorld, openOauthWorld, scopeOf, whoami } from './world.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
  client = await world.client({ grant_types: [GRANT], redirect_uris: undefined, response_types: undefined })
  await world.account('alice')
})
afterAll(() => world.close())

const begin = (fields: Record<string, string> = {}) =>
  world.form(world.metadata.device_authorization_endpoint, {
    client_id: client,
    scope: scopeOf('TELEVISION'),
    ...fields,
  })

async function poll(device_code: string, clientId = client) {
  const answer = await world.form(world.metadata.token_endpoint, {
    grant_type: GRANT,
    device_code,
    client_id: clientId,
  })
  world.advance(5_001)
  return answer
}

/** A person at the page for codes, signed in. */
async function atLink(browser: Browsing, query = ''): Promise<Page> {
  return browser.signIn(await browser.open(`/_hearth/account/link${query}`), 'alice')
}

describe('a device that shows a code', () => {
  it('is signed in by a person who enters the code elsewhere', async () => {
    const { status, body } = await begin()
    expect(status).toBe(200)
    expect(body).toEqual({
      device_code: expect.any(String),
      user_code: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/),
      verification_uri: `${world.origin}/_hearth/account/link`,
      verification_uri_complete: `${world.origin}/_hearth/account/link?user_code=${body.user_code}`,
      expires_in: 600,
      interval: 5,
    })
    expect((await poll(body.device_code)).body.error).toBe('authorization_pending')
    const browser = world.browser()
    const entry = await atLink(browser)
    expect(entry.heading).toBe('Sign in another device')
    const typed = body.user_code.replace('-', ' ').toLowerCase()
    const question = await browser.submit(entry, { user_code: typed })
    expect(question.heading).toBe('Is this your device?')
    expect(question.text).toContain('app.example.com')
    expect(question.text).toContain('TELEVISION')
    const done = await browser.submit(question, { decision: 'allow' })
    expect(done.heading).toBe('The device is signed in')
    const tokens = await poll(body.device_code)
    expect(tokens.status).toBe(200)
    expect((await whoami(world, tokens.body.access_token)).body).toMatchObject({
      user_id: '@alice:localhost',
      device_id: 'TELEVISION',
    })
    // Neither code is good for anything any more.
    expect((await browser.submit(entry, { user_code: typed })).heading).toBe('Sign in another device')
    expect((await poll(body.device_code)).body.error).toBe('invalid_grant')
  })

  it('has no session before somebody allows it', async () => {
    const { body } = await begin({ scope: scopeOf('NOTYETHERE') })
    await poll(body.device_code)
    const rows = await world.db.query("SELECT 1 FROM device WHERE device_id = 'NOTYETHERE'", [])
    expect(rows).toEqual([])
  })

  it('gets no session by an approval from before the person ended all sessions', async () => {
    const { body } = await begin({ scope: scopeOf('TOOLATE') })
    const browser = world.browser()
    const question = await atLink(browser, `?user_code=${body.user_code}`)
    expect((await browser.submit(question, { decision: 'allow' })).heading).toBe('The device is signed in')
    const { access_token: token } = await world.api.call('POST', '/login', {
      body: { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'alice' }, password: PASSWORD },
    })
    await world.api.call('POST', '/logout/all', { token, body: {} })
    expect((await poll(body.device_code)).body.error).toBe('invalid_grant')
  })

  it('is told when the person refuses it', async () => {
    const { body } = await begin()
    const browser = world.browser()
    const question = await atLink(browser, `?user_code=${body.user_code}`)
    expect(question.heading).toBe('Is this your device?')
    expect((await browser.submit(question, { decision: 'deny' })).heading).toBe('The device was refused')
    expect((await poll(body.device_code)).body.error).toBe('access_denied')
  })

  it('belongs to the first who decides, however many decide at once', async () => {
    await world.account('mallory')
    const { body } = await begin({ scope: scopeOf('CONTESTED0') })
    const link = `/_hearth/account/link?user_code=${body.user_code}`
    const asked = await Promise.all(
      ['alice', 'mallory', 'alice', 'mallory'].map(async (name) => {
        const browser = world.browser()
        return { name, browser, question: await browser.signIn(await browser.open(link), name) }
      }),
    )
    const done = await Promise.all(
      asked.map(async ({ name, browser, question }, index) => {
        const { heading } = await browser.submit(question, { decision: index === 3 ? 'deny' : 'allow' })
        return { name, heading }
      }),
    )
    const decided = done.filter(({ heading }) => heading !== 'Sign in another device')
    expect(decided).toHaveLength(1)
    const answer = await poll(body.device_code)
    if (decided[0]!.heading === 'The device was refused') expect(answer.body.error).toBe('access_denied')
    else expect((await whoami(world, answer.body.access_token)).body.user_id).toBe(`@${decided[0]!.name}:localhost`)
    // Nobody can decide again afterwards.
    for (const { browser, question } of asked) {
      expect((await browser.submit(question, { decision: 'deny' })).heading).toBe('Sign in another device')
    }
  })

  it('is told to ask less often', async () => {
    const { body } = await begin()
    const ask = () =>
      world.form(world.metadata.token_endpoint, { grant_type: GRANT, device_code: body.device_code, client_id: client })
    expect((await ask()).body.error).toBe('authorization_pending')
    expect((await ask()).body.error).toBe('slow_down')
  })

  it('waits for ten minutes', async () => {
    const { body } = await begin()
    world.advance(600_001)
    expect(['expired_token', 'invalid_grant']).toContain((await poll(body.device_code)).body.error)
  })

  it('must be the one that began', async () => {
    const { body } = await begin()
    const other = await world.client({ grant_types: [GRANT], redirect_uris: undefined, client_name: 'Another' })
    expect((await poll(body.device_code, other)).body.error).toBe('invalid_grant')
  })

  it('needs a client that may', async () => {
    const web = await world.client({ grant_types: ['authorization_code'], client_name: 'For the web' })
    const { status, body } = await begin({ client_id: web })
    expect([status, body.error]).toEqual([400, 'unauthorized_client'])
  })

  it.each([
    [{ scope: 'urn:matrix:client:api:*' }, 'invalid_scope'],
    [{ scope: '' }, 'invalid_scope'],
    [{ client_id: 'unknown' }, 'invalid_client'],
  ])('with %j is refused', async (fields, error) => {
    expect((await begin(fields)).body.error).toBe(error)
  })
})

describe('the page for codes', () => {
  it('asks people to sign in again who did so long ago', async () => {
    const browser = world.browser()
    await atLink(browser)
    world.advance(11 * 60_000)
    expect((await browser.open('/_hearth/account/link')).heading).toBe('Confirm that it is you')
  })

  it('says of any other code the same', async () => {
    const browser = world.browser()
    const entry = await atLink(browser)
    for (const user_code of ['BCDF-GHJK', 'nonsense', '', "'); DROP TABLE device; --"]) {
      const answer = await browser.submit(entry, { user_code })
      expect(answer.status).toBe(400)
      expect(answer.text).toContain('No device waits with this code')
    }
  })
})
