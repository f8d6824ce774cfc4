import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Json } from '../support/api.ts'
import type { Browsing } from '../support/browsing.ts'
import { type OauthWorld, openOauthWorld, refresh, session } from './world.ts'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld({}, 'whole')
  client = await world.client()
})
afterAll(() => world.close())

/** A browser in which a new person is signed in, and a session of an app. */
async function person(name: string): Promise<{ browser: Browsing; app: Json; userId: string }> {
  await world.account(name)
  const browser = world.browser()
  await browser.signIn(await browser.open('/_hearth/account'), name)
  return { browser, app: await session(world, client, name), userId: `@${name}:localhost` }
}

describe('replacing cross-signing keys', () => {
  const keyOf = (user_id: string) => {
    const key = signingKeyFromSeed('ed25519:x', randomBytes(32)).publicKey
    return { user_id, usage: ['master'], keys: { [`ed25519:${key}`]: key } }
  }
  const upload = (token: string, body: object) =>
    world.api.request('POST', '/keys/device_signing/upload', { token, body })

  it('is allowed on the page, once, and for one app', async () => {
    const { browser, app, userId } = await person('lena')
    expect((await upload(app.access_token, { master_key: keyOf(userId) })).status).toBe(200)
    const second = { master_key: keyOf(userId) }
    const challenge = await upload(app.access_token, second)
    expect(challenge.status).toBe(401)
    expect(challenge.body.flows).toEqual([{ stages: ['m.oauth'] }, { stages: ['org.matrix.cross_signing_reset'] }])
    const { url } = challenge.body.params['m.oauth']
    expect(url).toBe(`${world.origin}/_hearth/account?action=org.matrix.cross_signing_reset`)
    const auth = { session: challenge.body.session }
    expect((await upload(app.access_token, { ...second, auth })).status).toBe(401)
    const page = await browser.open(url)
    expect(page.heading).toBe('Allow a reset of your keys?')
    expect((await browser.submit(page)).text).toContain('within the next ten minutes')
    expect((await upload(app.access_token, { ...second, auth })).status).toBe(200)
    const third = await upload(app.access_token, { master_key: keyOf(userId) })
    const again = { master_key: keyOf(userId), auth: { session: third.body.session } }
    expect((await upload(app.access_token, again)).status).toBe(401)
  })

  it('is not allowed for longer than ten minutes', async () => {
    const { browser, app, userId } = await person('mia')
    await upload(app.access_token, { master_key: keyOf(userId) })
    await browser.submit(await browser.open('/_hearth/account/keys'))
    world.advance(11 * 60_000)
    const renewed = (await refresh(world, app.refresh_token, client)).body.access_token
    const body = { master_key: keyOf(userId) }
    const { session: uia } = (await upload(renewed, body)).body
    expect((await upload(renewed, { ...body, auth: { session: uia } })).status).toBe(401)
  })
})
