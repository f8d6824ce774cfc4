import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Front, openFront } from '../sso/front.ts'
import { CLIENT, openTestProvider, type TestProvider } from '../sso/provider.ts'
import { passProvider } from '../sso/without-browser.ts'
import { Browsing, type Page } from '../support/browsing.ts'
import { act, bearer, CONSOLE, type ConsoleWorld, factsIn, openConsoleWorld } from './world.ts'

const MAKE_ADMIN = '/_synapse/admin/v1/users/@alice:localhost/admin'

let front: Front
let provider: TestProvider
let world: ConsoleWorld

beforeAll(async () => {
  front = await openFront({ host: 'localhost' })
  provider = await openTestProvider(`${front.origin}/_hearth/sso/callback`)
  const example = { id: 'example', name: 'Example Inc.', issuer: provider.issuer }
  world = await openConsoleWorld({
    public_base_url: front.origin,
    registration: { enabled: true },
    sso: { providers: [{ ...example, client_id: CLIENT.id, client_secret: CLIENT.secret }] },
  })
  front.lead(Number(new URL(world.origin).port))
  await world.person('alice')
  provider.people.boss = { preferred_username: 'boss' }
  const external_ids = [{ auth_provider: 'example', external_id: 'boss' }]
  await world.call('PUT', '/_synapse/admin/v2/users/@boss:localhost', { external_ids })
  await world.server.database.db.tx((tx) =>
    tx.query(`UPDATE account SET password_hash = NULL
      WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = '@boss:localhost')`),
  )
})
afterAll(async () => {
  await world.close()
  await Promise.all([front.close(), provider.close()])
})

/** Signs in at the provider, on the way to the console. */
async function signInThere(browser: Browsing): Promise<Page> {
  const { left } = await browser.open(`/_hearth/account/provider/example?next=${encodeURIComponent(CONSOLE)}`)
  if (left === undefined) throw new Error('the page does not lead to the provider')
  return browser.open(await passProvider(left, 'boss'))
}

describe('an administrator who has no password here', () => {
  it('comes to the console by one sign-in at the provider, which asks who they are', async () => {
    provider.asked.length = 0
    const page = await signInThere(new Browsing(front.origin))
    expect(provider.asked.map((query) => query.get('max_age'))).toEqual(['0'])
    expect(page.url.pathname).toBe(CONSOLE)
    expect(factsIn(page)).toMatchObject({ user_id: '@boss:localhost', has_password: false })
  })

  it('does a grave act after another sign-in there, and has the same console', async () => {
    const browser = new Browsing(front.origin)
    const page = await signInThere(browser)
    const makeAdmin = () => act({ origin: front.origin }, browser, 'PUT', MAKE_ADMIN, bearer(page), { admin: false })
    await world.server.database.db.tx((tx) => tx.query('UPDATE web_session SET proven_at = proven_at - 900000'))
    expect((await makeAdmin()).body).toMatchObject({ errcode: 'M_FORBIDDEN', proof_needed: true })
    const again = await signInThere(browser)
    expect(bearer(again)).toEqual(bearer(page))
    expect((await makeAdmin()).status).toBe(200)
  })

  it('and one who has a password is asked for it', async () => {
    const { db } = world.server.database
    await db.tx((tx) => tx.query('DELETE FROM web_session'))
    await world.call('POST', '/_synapse/admin/v1/reset_password/@boss:localhost', {
      new_password: 'another long password 42',
      logout_devices: false,
    })
    expect(factsIn(await signInThere(new Browsing(front.origin)))).toMatchObject({ has_password: true })
  })
})
