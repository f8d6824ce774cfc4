import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { PASSWORD } from '../support/api.ts'
import type { Browsing, Page } from '../support/browsing.ts'
import { act, bearer, CONSOLE, type ConsoleWorld, openConsoleWorld, signedIn } from './world.ts'

let world: ConsoleWorld
const PROOF = '/_hearth/admin/v1/session/proof'
const MAKE_ADMIN = '/_synapse/admin/v1/users/@alice:localhost/admin'

beforeAll(async () => {
  world = await openConsoleWorld({ registration: { enabled: true } })
  await world.person('alice')
})
afterAll(() => world.close())

/** A console whose administrator signed in a quarter of an hour ago, as all others did. */
async function oldConsole(): Promise<{ browser: Browsing; page: Page }> {
  const browser = world.browsing()
  const page = await signedIn(browser)
  await age()
  return { browser, page }
}

const age = () => world.server.database.db.tx((tx) => tx.query('UPDATE web_session SET proven_at = proven_at - 900000'))

const makeAdmin = ({ browser, page }: { browser: Browsing; page: Page }, admin = false) =>
  act(world, browser, 'PUT', MAKE_ADMIN, bearer(page), { admin })

const NEEDED = expect.objectContaining({ errcode: 'M_FORBIDDEN', proof_needed: true })

describe('a grave act in the console', () => {
  it('needs nothing more soon after the sign-in', async () => {
    const browser = world.browsing()
    expect((await makeAdmin({ browser, page: await signedIn(browser) })).status).toBe(200)
  })

  it('needs a new proof later, and lighter acts do not', async () => {
    const old = await oldConsole()
    const { status, body } = await makeAdmin(old)
    expect([status, body]).toEqual([403, NEEDED])
    const lock = '/_matrix/client/v1/admin/lock/@alice:localhost'
    expect((await act(world, old.browser, 'PUT', lock, bearer(old.page), { locked: false })).status).toBe(200)
    const { admin } = await world.call('GET', MAKE_ADMIN)
    expect(admin).toBe(false)
  })

  it('is done after the password, of this console alone', async () => {
    const [old, other] = [await oldConsole(), await oldConsole()]
    const proof = await act(world, old.browser, 'POST', PROOF, bearer(old.page), { password: PASSWORD })
    expect([proof.status, proof.body]).toEqual([200, {}])
    expect((await makeAdmin(old)).status).toBe(200)
    expect((await makeAdmin(other)).body).toEqual(NEEDED)
    await age()
    expect((await makeAdmin(old)).body).toEqual(NEEDED)
  })

  it('is not done after a wrong password, which is in the record', async () => {
    const old = await oldConsole()
    const wrong = await act(world, old.browser, 'POST', PROOF, bearer(old.page), { password: 'not this one' })
    expect([wrong.status, wrong.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect((await makeAdmin(old)).body).toEqual(NEEDED)
    const { acts } = await world.call('GET', '/_hearth/admin/v1/acts?limit=1')
    expect(acts[0]).toMatchObject({ actor: '@boss:localhost', act: `POST ${PROOF}`, outcome: 'M_FORBIDDEN' })
  })

  it('has its proof from nobody without the token of the page', async () => {
    const old = await oldConsole()
    const forged = await act(world, old.browser, 'POST', PROOF, {}, { password: PASSWORD })
    expect([forged.status, forged.body.errcode]).toEqual([401, 'M_MISSING_TOKEN'])
    expect((await makeAdmin(old)).body).toEqual(NEEDED)
  })

  it('is done after a new sign-in, by which one comes back to the same console', async () => {
    const old = await oldConsole()
    const confirm = await old.browser.open(`/_hearth/account/sign-in?next=${encodeURIComponent(CONSOLE)}`)
    expect(confirm.heading).toBe('Confirm that it is you')
    const page = await old.browser.signIn(confirm, 'boss')
    expect(bearer(page)).toEqual(bearer(old.page))
    expect((await makeAdmin(old)).status).toBe(200)
  })

  it('is not done after somebody else signed in on the account page of this browser', async () => {
    const old = await oldConsole()
    await old.browser.signIn(await old.browser.open('/_hearth/account/sign-in?other=yes'), 'alice')
    await old.browser.open(CONSOLE)
    expect((await makeAdmin(old)).body).toEqual(NEEDED)
  })

  it('is not done because an account page was left open', async () => {
    const old = await oldConsole()
    await old.browser.open(CONSOLE)
    expect((await makeAdmin(old)).body).toEqual(NEEDED)
  })
})

describe('a tool with an access token', () => {
  it('is asked for no other proof', async () => {
    expect((await world.ask('PUT', MAKE_ADMIN, { admin: false })).status).toBe(200)
    const { status, body } = await world.ask('POST', PROOF, { password: PASSWORD })
    expect([status, body.proof_needed]).toEqual([403, undefined])
  })
})

/** What destroys for good, ends sessions, or gives power over accounts or rooms, and acts on many accounts. */
const GRAVE = [
  'DELETE /_hearth/admin/v1/identity/people/{person}',
  'DELETE /_hearth/admin/v1/policy_lists/{roomId}',
  'DELETE /_hearth/admin/v1/room_reports/{reportId}',
  'DELETE /_synapse/admin/v1/event_reports/{reportId}',
  'DELETE /_synapse/admin/v1/media/{serverName}/{mediaId}',
  'DELETE /_synapse/admin/v1/rooms/{roomIdOrAlias}/forward_extremities',
  'DELETE /_synapse/admin/v1/rooms/{roomId}',
  'DELETE /_synapse/admin/v1/user_reports/{reportId}',
  'DELETE /_synapse/admin/v1/users/{userId}/media',
  'DELETE /_synapse/admin/v2/rooms/{roomId}',
  'DELETE /_synapse/admin/v2/users/{userId}/devices/{deviceId}',
  'POST /_hearth/admin/v1/crowds/quarantine',
  'POST /_hearth/admin/v1/crowds/redact',
  'POST /_hearth/admin/v1/crowds/restrain',
  'POST /_hearth/admin/v1/signing_key/rotate',
  'POST /_hearth/admin/v1/users/{userId}/logout',
  'POST /_synapse/admin/v1/deactivate/{userId}',
  'POST /_synapse/admin/v1/media/delete',
  'POST /_synapse/admin/v1/purge_history/{roomId}/{upTo}',
  'POST /_synapse/admin/v1/reset_password/{userId}',
  'POST /_synapse/admin/v1/rooms/{roomIdOrAlias}/make_room_admin',
  'POST /_synapse/admin/v1/user/{userId}/redact',
  'POST /_synapse/admin/v1/users/{userId}/login',
  'POST /_synapse/admin/v2/users/{userId}/delete_devices',
  'PUT /_hearth/admin/v1/policy_lists/{roomId}',
  'PUT /_synapse/admin/v1/users/{userId}/admin',
  'PUT /_synapse/admin/v2/users/{userId}',
]

describe('grave', () => {
  it('are these acts', () => {
    const grave = adminEndpoints.filter(({ options }) => options.grave).map(({ method, path }) => `${method} ${path}`)
    expect(grave.toSorted()).toEqual(GRAVE)
  })

  it.each(GRAVE)('%s is refused to an old console before anything of it is read', async (line) => {
    const old = await oldConsole()
    const [method = '', path = ''] = line.split(' ')
    const concrete = path
      .replace('{userId}', '@alice:localhost')
      .replace('{roomId}', '!room:localhost')
      .replace(/\{\w+\}/g, 'x')
    const { status, body } = await act(world, old.browser, method, concrete, bearer(old.page), { crowd: 'nonsense' })
    expect([status, body]).toEqual([403, NEEDED])
  })
})
