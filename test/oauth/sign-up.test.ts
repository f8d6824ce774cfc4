import { afterEach, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import { addressOf, answerIn, exchange, type OauthWorld, openOauthWorld, requestOf, whoami } from './world.ts'

let world: OauthWorld

afterEach(() => world.close())

const fields = (username: string) => ({ username, password: PASSWORD, repeated: PASSWORD })

describe('signing up', () => {
  it('leads from an app that wants it to a session there', async () => {
    world = await openOauthWorld({ registration: { enabled: true } })
    expect(world.metadata.prompt_values_supported).toEqual(['create'])
    const client = await world.client()
    const browser = world.browser()
    const request = requestOf(client, { prompt: 'create' })
    const form = await browser.open(addressOf(world, request))
    expect(form.heading).toBe('Create an account')
    const unequal = await browser.submit(form, { ...fields('newcomer'), repeated: 'another' })
    expect(unequal.text).toContain('The two passwords are not the same.')
    expect(unequal.text).toContain('value="newcomer"')
    const weak = await browser.submit(form, { username: 'newcomer', password: 'x', repeated: 'x' })
    expect([weak.status, weak.heading]).toEqual([400, 'Create an account'])
    const consent = await browser.submit(form, fields(' NewComer '))
    expect(consent.heading).toBe('Allow app.example.com?')
    const code = answerIn(await browser.submit(consent, { decision: 'allow' })).get('code') ?? ''
    const tokens = await exchange(world, request, code)
    expect((await whoami(world, tokens.body.access_token)).body.user_id).toBe('@newcomer:localhost')
    const taken = await world.browser().open('/_hearth/account/sign-up')
    const other = world.browser()
    const second = await other.open('/_hearth/account/sign-up')
    expect((await other.submit(second, fields('newcomer'))).text).toContain('This name is taken.')
    expect(taken.heading).toBe('Create an account')
  })

  it('goes through every stage that is configured', async () => {
    world = await openOauthWorld({
      registration: {
        enabled: true,
        require_token: true,
        token: 'welcome',
        email: 'optional',
        terms: {
          policies: [
            {
              id: 'privacy',
              version: '1',
              languages: [{ language: 'en', name: 'Privacy', url: 'https://hs.example/privacy' }],
            },
          ],
        },
      },
    })
    const browser = world.browser()
    const first = await browser.open('/_hearth/account/sign-up?next=%2F_hearth%2Faccount%2Flink')
    const wrong = await browser.submit(first, { token: 'wrong' })
    expect(wrong.status).toBe(401)
    const terms = await browser.submit(wrong, { token: 'welcome' })
    expect(terms.text).toContain('https://hs.example/privacy')
    const form = await browser.submit(terms)
    expect(form.heading).toBe('Create an account')
    const done = await browser.submit(form, fields('staged'))
    expect(done.url.pathname).toBe('/_hearth/account/link')
  })

  it('is not offered where nobody can register', async () => {
    world = await openOauthWorld({ registration: { enabled: false } })
    expect(world.metadata).not.toHaveProperty('prompt_values_supported')
    const browser = world.browser()
    expect((await browser.open('/_hearth/account/sign-in')).text).not.toContain('sign-up')
    const page = await browser.open('/_hearth/account/sign-up')
    expect([page.status, page.heading]).toEqual([403, 'No new accounts'])
  })

  it('needs the form of its own browser', async () => {
    world = await openOauthWorld({ registration: { enabled: true } })
    const form = await world.browser().open('/_hearth/account/sign-up')
    const page = await world.browser().submit(form, fields('forged'))
    expect(page.status).toBe(403)
  })
})
