import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Browsing } from '../support/browsing.ts'
import { addressOf, answerIn, type OauthWorld, openOauthWorld, requestOf } from './world.ts'

/** Signing in to the pages by a token of a service of the operator, which that service sends by a form. */

const SECRET = 'a secret of thirty-two characters.'
const PORTAL = 'https://portal.example.org/chat'
let world: OauthWorld

beforeAll(async () => {
  world = await openOauthWorld({ jwt: { secret: SECRET, portal_url: PORTAL, portal_name: 'The portal' } })
})
afterAll(() => world.close())

const now = () => Math.floor(Date.now() / 1000)
const tokenFor = (sub: string, claims: { [claim: string]: unknown } = {}) =>
  new SignJWT({ sub, exp: now() + 60, iat: now(), ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(SECRET))

/** As the portal sends it: another site, so that the browser sends no cookies. */
async function arrive(browser: Browsing, token: string, next?: string) {
  const kept = [...browser.jar]
  browser.jar.clear()
  const page = await browser.open(
    '/_hearth/account/token',
    { token, ...(next !== undefined && { next }) },
    { 'sec-fetch-site': 'cross-site' },
  )
  for (const [name, cookie] of kept) if (!browser.jar.has(name)) browser.jar.set(name, cookie)
  return page
}

describe('somebody who signs in only by tokens', () => {
  it('is led to the portal, and comes back to the page that they wanted', async () => {
    const browser = world.browser()
    const request = requestOf(await world.client())
    const page = await browser.open(addressOf(world, request))
    const link = /href="(https:\/\/portal[^"]*)"/.exec(page.text)?.[1] ?? ''
    const portal = new URL(link.replaceAll('&#38;', '&').replaceAll('&amp;', '&'))
    expect(page.text).toContain('Continue with The portal')
    expect(portal.pathname).toBe('/chat')
    const question = await arrive(browser, await tokenFor('anna'), portal.searchParams.get('next') ?? '')
    expect(question.heading).toBe('Continue as anna?')
    const consent = await browser.submit(question)
    expect(consent.heading).toBe('Allow app.example.com?')
    expect(answerIn(await browser.submit(consent, { decision: 'allow' })).get('code')).toMatch(/./)
  })

  it('is signed in by no form that another site sent twice, or that was made for another browser', async () => {
    const browser = world.browser()
    const token = await tokenFor('eve')
    const other = world.browser()
    const theirs = await arrive(other, token)
    const proof = /name="proof" value="([^"]*)"/.exec(theirs.text)?.[1] ?? ''
    expect(proof).not.toBe('')
    await arrive(browser, token)
    const form = { token, next: '/_hearth/account', proof }
    expect((await browser.open('/_hearth/account/token', form)).heading).toBe('Continue as eve?')
    const crossing = { 'sec-fetch-site': 'cross-site' }
    const own = await arrive(browser, token)
    expect((await browser.submit(own, {}, crossing)).heading).toBe('Continue as eve?')
    expect((await browser.open('/_hearth/account')).heading).toBe('Sign in')
    // The question is about this token and this page alone.
    const asked = await arrive(browser, token)
    const changed = await browser.submit(asked, { token: await tokenFor('mallory') })
    expect(changed.heading).toBe('Continue as mallory?')
  })

  it('may do what cannot be undone after a fresh token alone', async () => {
    const browser = world.browser()
    for (const [claims, heading] of [
      [{ iat: now() - 3_600 }, 'Confirm that it is you'],
      [{ iat: undefined }, 'Confirm that it is you'],
      [{}, 'Delete your account?'],
    ] as const) {
      const question = await arrive(browser, await tokenFor('bert', claims), '/_hearth/account/deactivate')
      expect((await browser.submit(question)).heading).toBe(heading)
    }
  })

  it('is told what is wrong with a token', async () => {
    const browser = world.browser()
    for (const token of ['nonsense', await tokenFor('carl', { exp: now() - 600 }), await tokenFor('not a name!')]) {
      let page = await arrive(browser, token)
      if (page.heading.startsWith('Continue')) page = await browser.submit(page)
      expect(page.heading).toBe('Sign in')
      expect(page.text).toMatch(/role="alert">(?:The token is not good here|Your user name cannot be used)/)
    }
    const question = await arrive(browser, await tokenFor('dora'))
    await browser.submit(question)
    await world.db.query(
      "UPDATE account SET is_locked = true FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = '@dora:localhost'",
    )
    const locked = await browser.submit(await arrive(browser, await tokenFor('dora')))
    expect(locked.text).toContain('This account is locked')
  })

  it('goes nowhere else', async () => {
    const browser = world.browser()
    const question = await arrive(browser, await tokenFor('frida'), 'https://evil.example/')
    const page = await browser.submit(question)
    expect([page.left, page.heading]).toEqual([undefined, 'Your account'])
  })
})
