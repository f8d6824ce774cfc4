import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import { type Json, PASSWORD } from '../support/api.ts'
import { type Browsing, hiddenOf } from '../support/browsing.ts'
import { type OauthWorld, openOauthWorld, refresh, session, whoami } from './world.ts'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
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

describe('the account page', () => {
  it('shows sessions of both kinds, and ends one: its app is out at once', async () => {
    const { browser, app } = await person('anna')
    await whoami(world, app.access_token)
    const page = await browser.open('/_hearth/account')
    expect(page.heading).toBe('Your account')
    expect(page.text.match(/href="\/_hearth\/account\/session\?device_id=/g)).toHaveLength(2)
    const view = await browser.open('/_hearth/account?action=org.matrix.device_view&device_id=DEVICE0001')
    expect(view.heading).toBe('An app')
    expect(view.text).toContain('<dd>app.example.com</dd>')
    const done = await browser.submit(view)
    expect(done.text).toContain('The session has ended.')
    expect((await whoami(world, app.access_token)).status).toBe(401)
    expect((await refresh(world, app.refresh_token, client)).body.error).toBe('invalid_grant')
  })

  it.each(['org.matrix.device_delete', 'device_delete', 'org.matrix.session_end', 'session_end'])(
    'asks before it does what a link wants: %s',
    async (action) => {
      const { browser, app } = await person(`link-${action.replace(/\W/g, '-')}`)
      const page = await browser.open(`/_hearth/account?${new URLSearchParams({ action, device_id: 'DEVICE0001' })}`)
      expect(page.heading).toBe('End this session?')
      expect((await whoami(world, app.access_token)).status).toBe(200)
    },
  )

  it('asks who it is again before a session is ended, if that was long ago', async () => {
    const { browser, app } = await person('bert')
    const view = await browser.open('/_hearth/account/session?device_id=DEVICE0001')
    world.advance(11 * 60_000)
    const again = await browser.submit(view)
    expect(again.heading).toBe('Confirm that it is you')
    const back = await browser.signIn(again, 'bert')
    expect(back.heading).toBe('End this session?')
    await browser.submit(back)
    expect((await refresh(world, app.refresh_token, client)).body.error).toBe('invalid_grant')
  })

  it("cannot end another person's session", async () => {
    const { app } = await person('carla')
    const { browser } = await person('dirk')
    const own = await browser.open('/_hearth/account/session?device_id=DEVICE0001')
    await browser.submit(own)
    await browser.submit({ ...own, text: own.text }, { device_id: 'DEVICE0001' })
    expect((await whoami(world, app.access_token)).status).toBe(200)
  })

  it('changes the display name', async () => {
    const { browser, userId } = await person('emma')
    const done = await browser.submit(await browser.open('/_hearth/account'), { display_name: ' Emma <i> ' })
    expect(done.text).toContain('Others see your new name.')
    expect(done.text).not.toContain('<i>')
    expect((await world.api.call('GET', `/profile/${encodeURIComponent(userId)}`)).displayname).toBe('Emma <i>')
    const long = await browser.submit(done, { display_name: 'x'.repeat(300) })
    expect([long.status, long.heading]).toEqual([400, 'Your account'])
  })

  it('changes no display name of a suspended account', async () => {
    const { browser, userId } = await person('suse')
    await world.db.tx((tx) =>
      tx.query(
        'UPDATE account SET is_suspended = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
        [userId],
      ),
    )
    const refused = await browser.submit(await browser.open('/_hearth/account'), { display_name: 'Spam' })
    expect([refused.status, refused.heading]).toEqual([403, 'Your account'])
    expect((await world.api.call('GET', `/profile/${encodeURIComponent(userId)}`)).displayname).not.toBe('Spam')
  })

  it('signs out of itself, and the app stays signed in', async () => {
    const { browser, app } = await person('fritz')
    const page = await browser.open('/_hearth/account')
    expect((await browser.open('/_hearth/account/sign-out', hiddenOf(page))).heading).toBe('Sign in')
    expect((await browser.open('/_hearth/account')).heading).toBe('Sign in')
    expect((await whoami(world, app.access_token)).status).toBe(200)
  })
})

describe('a new password', () => {
  it('needs the present one, and signs out all other browsers', async () => {
    const { browser, app } = await person('gerda')
    const other = world.browser()
    await other.signIn(await other.open('/_hearth/account'), 'gerda')
    const form = await browser.open('/_hearth/account/password')
    const wrong = await browser.submit(form, { password: 'wrong', new_password: 'another long password' })
    expect(wrong.text).toContain('Your present password is another one.')
    const weak = await browser.submit(form, { password: PASSWORD, new_password: 'short' })
    expect([weak.status, weak.heading]).toEqual([400, 'Change the password'])
    const done = await browser.submit(form, { password: PASSWORD, new_password: 'another long password' })
    expect(done.text).toContain('You have a new password.')
    expect((await other.open('/_hearth/account')).heading).toBe('Sign in')
    expect((await whoami(world, app.access_token)).status).toBe(200)
  })

  it('is not set by the password of another person, whom a directory may know by the same name', async () => {
    const [{ userId }, { userId: other }] = [await person('gesa'), await person('gesine')]
    const [row] = await world.db.query<{ user_nid: number }>('SELECT user_nid FROM matrix_user WHERE user_id = $1', [
      other,
    ])
    const wish = { present: PASSWORD, password: 'another long password', endsSessions: false }
    const { ownAccount } = world.services.oauth
    const changing = ownAccount.changePassword({ userNid: row!.user_nid, userId: userId as UserId }, wish, '192.0.2.1')
    await expect(changing).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
  })

  it('signs in nobody who gave the old one while it changed', async () => {
    const { browser, userId } = await person('greta')
    const late = world.browser()
    const form = await late.open('/_hearth/account')
    let signing: ReturnType<Browsing['signIn']> | undefined
    await world.db.tx(async (tx) => {
      await tx.query('LOCK TABLE web_session IN EXCLUSIVE MODE', [])
      await tx.query(
        "UPDATE account SET password_hash = 'new' WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)",
        [userId],
      )
      signing = late.signIn(form, 'greta')
      await vi.waitFor(
        async () => expect(await world.db.query('SELECT 1 AS one FROM pg_locks WHERE NOT granted', [])).toHaveLength(1),
        { timeout: 10_000, interval: 20 },
      )
    })
    expect((await signing)?.heading).toBe('Sign in')
    expect((await late.open('/_hearth/account')).heading).toBe('Sign in')
    expect((await browser.open('/_hearth/account')).heading).toBe('Sign in')
  })

  it('ends all sessions if that is wanted', async () => {
    const { browser, app } = await person('hans')
    const form = await browser.open('/_hearth/account/password')
    const fields = { password: PASSWORD, new_password: 'another long password', logout: 'yes' }
    expect((await browser.submit(form, fields)).heading).toBe('Your account')
    expect((await whoami(world, app.access_token)).status).toBe(401)
  })
})

describe('deleting the account', () => {
  it('needs its name, and then everything has ended', async () => {
    const { browser, app, userId } = await person('ida')
    const form = await browser.open('/_hearth/account?action=org.matrix.account_deactivate')
    expect(form.heading).toBe('Delete your account?')
    const wrong = await browser.submit(form, { confirmation: 'ida' })
    expect(wrong.text).toContain('Type your user id exactly as it is shown.')
    expect((await whoami(world, app.access_token)).status).toBe(200)
    const done = await browser.submit(form, { confirmation: userId, erase: 'yes' })
    expect(done.heading).toBe('Your account is deleted')
    expect((await whoami(world, app.access_token)).status).toBe(401)
    expect((await refresh(world, app.refresh_token, client)).body.error).toBe('invalid_grant')
    expect((await browser.open('/_hearth/account')).heading).toBe('Sign in')
    const [row] = await world.db.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM web_session w JOIN matrix_user u USING (user_nid) WHERE u.user_id = $1',
      [userId],
    )
    expect(row!.count).toBe(0)
  })
})

describe('what the client interface leaves to this page', () => {
  it.each([
    ['DELETE', '/devices/DEVICE0001', {}],
    ['POST', '/delete_devices', { devices: ['DEVICE0001'] }],
    ['POST', '/account/password', { new_password: 'another long password' }],
    ['POST', '/account/deactivate', {}],
    ['POST', '/account/3pid/delete', { medium: 'email', address: 'someone@example.org' }],
  ])('%s %s', async (method, path, body) => {
    const { app } = await person(`left-${path.replace(/\W/g, '-').toLowerCase()}`)
    const answer = await world.api.request(method, path, { token: app.access_token, body })
    expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(answer.body.error).toMatch(/account page/)
  })

  it('is said in the capabilities of such a session, and of no other', async () => {
    const { app } = await person('jana')
    const { capabilities } = await world.api.call('GET', '/capabilities', { token: app.access_token })
    expect(capabilities['m.change_password']).toEqual({ enabled: false })
    expect(capabilities['m.3pid_changes']).toEqual({ enabled: false })
    const legacy = await world.account('karl')
    const others = await world.api.call('GET', '/capabilities', { token: legacy.token })
    expect(others.capabilities['m.change_password']).toEqual({ enabled: true })
  })
})
