import { SignJWT } from 'jose'
import { openOauthWorld } from '../../oauth/world.ts'
import { beginAt, openSsoWorld, type SsoWorld, signInAtProvider, type WorldOptions } from '../../sso/world.ts'
import { register } from '../../support/api.ts'
import type { Album, Tour } from './tour.ts'

const OTHER = { id: 'other', name: 'Other & Sons', issuer: 'https://other.test', client_id: 'x', brand: 'other' }

async function within(album: Album, options: WorldOptions, walk: (world: SsoWorld) => Promise<void>): Promise<void> {
  const world = await openSsoWorld(options)
  album.watch(world.server.services)
  try {
    await walk(world)
  } finally {
    await world.close()
  }
}

async function signInAt(world: SsoWorld, { page, open }: Tour, name: string, at = beginAt(world)): Promise<void> {
  await page.context().clearCookies()
  await open(at)
  if (!page.url().includes('/interaction/')) await page.click('.choices a')
  await signInAtProvider(page, name)
  // The click ends where the last of its redirections begins to be shown.
  await page.waitForLoadState('domcontentloaded')
}

/** Signing in by another service: the ways that lead to an account, and those that do not. */
export function walkWithProviders(album: Album, tour: Tour): Promise<void> {
  const { look, send, open, page, press } = tour
  return within(album, { others: [OTHER] }, async (world) => {
    Object.assign(world.provider.people, {
      alice: { preferred_username: 'alice' },
      taken: { preferred_username: 'alice', name: 'Another “Alice” with a long name' },
      gone: { preferred_username: 'gone' },
    })
    await open(beginAt(world))
    await look('sso-choose')
    await signInAt(world, tour, 'alice')
    await look('sso-continue')
    await page.reload()
    await look('sso-ended')
    await signInAt(world, tour, 'taken')
    await look('sso-name')
    await send({ username: 'alice' })
    await look('sso-name-taken')
    await send({ username: 'not a name' })
    await look('sso-name-invalid')
    await send({ username: 'alice.too' })
    await look('sso-welcome')
    await open(beginAt(world).replace('/redirect', '/redirect/nobody'))
    await look('sso-unknown-provider')
    await open(beginAt(world, 'javascript:alert(1)'))
    await look('sso-bad-address')
    await page.context().clearCookies()
    await open(beginAt(world).replace('/redirect', '/redirect/example'))
    await press('text=[ Cancel ]')
    await look('sso-cancelled')
    await open(beginAt(world).replace('/redirect', '/redirect/other'))
    await look('sso-unreachable')
    world.provider.tampering = (claims, sign) => sign(claims, 'wrong')
    await signInAt(world, tour, 'alice')
    await look('sso-refused')
    world.provider.tampering = undefined
    await signInAt(world, tour, 'gone')
    await world.server.db.tx((tx) =>
      tx.query(
        "UPDATE account SET deactivated_at = 1 FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = '@gone:localhost'",
      ),
    )
    await signInAt(world, tour, 'gone')
    await look('sso-deactivated')
    await open(`${world.origin}/_hearth/account/sign-in`)
    await look('sign-in-providers')
    await proveWho(world, tour)
  })
}

/** Somebody without a password proves who they are. */
async function proveWho(world: SsoWorld, tour: Tour): Promise<void> {
  const { look, open, page } = tour
  await signInAt(world, tour, 'alice')
  await page.click('.button')
  await page.waitForURL((url) => url.href.startsWith(world.client))
  const login = { type: 'm.login.token', token: new URL(page.url()).searchParams.get('loginToken') ?? '' }
  const { access_token: token, device_id: device } = await world.api.call('POST', '/login', { body: login })
  const { session } = (await world.api.request('DELETE', `/devices/${device}`, { token, body: {} })).body
  const fallback = `${world.origin}/_matrix/client/v3/auth/m.login.sso/fallback/web?session=${session}`
  await open(fallback)
  await look('sso-prove')
  await signInAt(world, tour, 'taken', fallback)
  await look('sso-other-person')
  world.provider.tampering = (claims, sign) => sign({ ...claims, auth_time: Math.floor(Date.now() / 1000) - 3_600 })
  await signInAt(world, tour, 'alice', fallback)
  await look('sso-not-again')
  world.provider.tampering = undefined
}

/** Servers that make no account for newcomers. */
export async function walkWithoutRoom(album: Album, tour: Tour): Promise<void> {
  await within(album, { provider: { allow_registration: false } }, async (world) => {
    world.provider.people.stranger = { preferred_username: 'stranger' }
    await signInAt(world, tour, 'stranger')
    await tour.look('sso-no-account')
  })
  const values = { registration: { max_users: 1 }, well_known: { support_email: 'help@localhost' } }
  await within(album, { values }, async (world) => {
    world.provider.people.late = { preferred_username: 'late' }
    await register(world.api, 'early')
    await signInAt(world, tour, 'late')
    await tour.look('sso-full')
  })
}

const SECRET = 'a secret of thirty-two characters.'

/** A server on which nobody registers, and to which a portal of the operator leads. */
export async function walkThroughPortal(album: Album, { open, look, page, press }: Tour): Promise<void> {
  const world = await openOauthWorld({
    registration: { enabled: false },
    jwt: { secret: SECRET, portal_url: 'https://portal.example.org/chat', portal_name: 'The portal' },
  })
  album.watch(world.services)
  try {
    await open(world.origin)
    await look('welcome-closed')
    await open(`${world.origin}/_hearth/account/sign-up`)
    await look('sign-up-closed')
    await open(`${world.origin}/_hearth/account/sign-in`)
    await look('sign-in-portal')
    const now = Math.floor(Date.now() / 1000)
    const token = await new SignJWT({ sub: 'anna', exp: now + 60, iat: now })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(SECRET))
    await open('about:blank')
    await page.setContent(
      `<form method="post" action="${world.origin}/_hearth/account/token"><input name="token" value="${token}"><button>Go</button></form>`,
    )
    await press('button')
    await look('portal')
  } finally {
    await world.close()
  }
}
