import sharp from 'sharp'
import { addressOf, type OauthWorld, requestOf, scopeOf, session } from '../../oauth/world.ts'
import { PASSWORD } from '../../support/api.ts'
import type { FakeGateway } from '../../support/sms-gateway.ts'
import type { SmtpSink } from '../../support/smtp.ts'
import { waitUntil } from '../../support/wait.ts'
import { linkIn } from './letters.ts'
import type { Tour } from './tour.ts'

export interface House {
  readonly world: OauthWorld
  readonly smtp: SmtpSink
  readonly gateway: FakeGateway
}

const ACCOUNT = '/_hearth/account'
const NEW_PASSWORD = 'a brand new password'

/** Somebody makes an account, and signs in with mistakes. */
export async function walkIntoAccount({ world }: House, tour: Tour, name: string): Promise<void> {
  const { open, look, send } = tour
  await open(world.origin)
  await look('welcome')
  await open(`${world.origin}${ACCOUNT}/sign-up`)
  await look('sign-up')
  await send({ username: 'taken', password: PASSWORD, repeated: PASSWORD })
  await look('sign-up-taken')
  await send({ username: 'not a name!', password: PASSWORD, repeated: PASSWORD })
  await look('sign-up-invalid')
  await send({ username: name, password: PASSWORD, repeated: 'another password' })
  await look('sign-up-unequal')
  await send({ username: name, password: PASSWORD, repeated: PASSWORD })
  await look('account-new')
  await tour.press('form[action$="sign-out"] button')
  await look('sign-in')
  await send({ username: name, password: 'wrong' })
  await look('sign-in-wrong')
  await send({ username: 'locked', password: PASSWORD })
  await look('sign-in-locked')
  await send({ username: 'gone', password: PASSWORD })
  await look('sign-in-deactivated')
  await send({ username: name, password: PASSWORD })
}

/** The account page, with all that can be changed there. */
export async function walkThroughAccount(house: House, tour: Tour, name: string): Promise<void> {
  const { world } = house
  const { open, look, send, page } = tour
  const at = (path: string) => open(world.origin + ACCOUNT + path)
  const login = (device_id: string, initial_device_display_name: string) =>
    world.api.call('POST', '/login', {
      body: {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user: name },
        password: PASSWORD,
        device_id,
        initial_device_display_name,
      },
    })
  await login('ABCDEFGHIJ', 'A phone with a rather long name that its owner has given to it, so that it is found')
  await login('LAPTOP0001', 'Laptop')
  await session(world, await world.client(), name, 'OAUTHAPP01')

  await at('')
  await send({ display_name: 'Ada “the Great” Lovelace <3' }, 'form[action$="profile"] button')
  await look('account-named')
  const picture = await sharp({ create: { width: 300, height: 200, channels: 3, background: '#2e6f9e' } })
    .png()
    .toBuffer()
  await page.setInputFiles('input[type=file]', { name: 'x.png', mimeType: 'image/png', buffer: Buffer.from('none') })
  await tour.press('form[enctype] button')
  await look('account-no-picture')
  await page.setInputFiles('input[type=file]', { name: 'x.png', mimeType: 'image/png', buffer: picture })
  await tour.press('form[enctype] button')
  await look('account-picture')

  await walkThroughAddresses(house, tour, name)

  await at(`/session?device_id=OAUTHAPP01`)
  await look('session')
  await at('?action=org.matrix.device_delete&device_id=LAPTOP0001')
  await look('session-ending')
  await send()
  await look('account-session-ended')
  await at('/password')
  await look('password')
  await send({ password: 'wrong', new_password: NEW_PASSWORD })
  await look('password-wrong')
  await at('/keys')
  await look('keys')
  await send()
  await look('account-keys')

  await at('/data')
  await look('data')
  await send()
  await look('data-begun')
  await waitUntil('the archive', async () => {
    await at('/data')
    return (await page.locator('main form').count()) === 2
  })
  await look('data-ready')
}

async function walkThroughAddresses({ world, smtp, gateway }: House, tour: Tour, name: string): Promise<void> {
  const { open, look, send } = tour
  const at = (path: string) => open(world.origin + ACCOUNT + path)
  const email = `${name}-with-a-rather-long-name@sub.example.org`
  await at('/email')
  await look('email')
  await send({ email: 'taken@example.org' })
  await look('email-taken')
  const before = smtp.mails.length
  await send({ email })
  await look('email-sent')
  await send()
  await look('email-too-soon')
  const aside = await tour.aside()
  await aside.open(await linkIn(smtp, before, world.origin))
  await aside.look('link-confirmed')
  await aside.close()
  await send()
  await look('account-email')

  await at('/phone')
  await look('phone')
  await send({ number: '07400 123456' })
  await look('phone-local')
  const asked = gateway.requests.length
  await send({ number: `+44 7400 12${name.length}${asked.toString().padStart(3, '0')}` })
  await look('phone-sent')
  const code = /\b(\d{6})\b/.exec(JSON.stringify(gateway.requests.slice(asked)))?.[1] ?? ''
  await send({ token: code === '000000' ? '000001' : '000000' })
  await look('phone-wrong')
  await send({ token: code })
  await look('account-phone')
  await tour.press('#addresses a[href*="address="]')
  await look('address')
}

/** Apps and devices that want into the account. */
export async function walkWithApps({ world }: House, tour: Tour, name: string): Promise<void> {
  const { open, look, send } = tour
  const client = await world.client()
  const web = requestOf(client, { scope: scopeOf('OAUTHAPP01') })
  await open(addressOf(world, web))
  await look('consent-replacing')
  await open(addressOf(world, requestOf(client)))
  await look('consent')
  const redirect = 'com.example.app:/callback'
  const native = await world.client({
    application_type: 'native',
    redirect_uris: [redirect],
    client_name: 'Some <b>app</b> & more',
    policy_uri: 'https://app.example.com/privacy',
    tos_uri: 'https://app.example.com/terms',
  })
  await administers(world, name, true)
  // The page leads on by itself to an app that is not there: it is never quite loaded, and the browser waits for what to do.
  const aside = await tour.aside()
  await aside.open(addressOf(world, requestOf(native, { redirect_uri: redirect })))
  await aside.look('consent-administrator')
  await aside.page.click('button[value=allow]')
  await aside.page.locator(`a[href^="${redirect}"]`).waitFor()
  await aside.look('return')
  await aside.close()
  await administers(world, name, false)

  await open(addressOf(world, requestOf(client, { redirect_uri: 'https://evil.example/' })))
  await look('refused-address')
  await open(addressOf(world, requestOf('unknown')))
  await look('refused-client')
  await open(`${world.origin}/_hearth/oauth/consent/gone`)
  await look('sign-in-ended')

  await open(`${world.origin}${ACCOUNT}/link`)
  await look('link')
  await send({ user_code: 'BCDF-GHJK' })
  await look('link-wrong')
  for (const [decision, device] of [
    ['deny', 'DEVICECODE1'],
    ['allow', 'OAUTHAPP01'],
  ] as const) {
    const { body } = await world.form(world.metadata.device_authorization_endpoint, {
      client_id: client,
      scope: scopeOf(device),
    })
    await open(`${world.origin}${ACCOUNT}/link`)
    await send({ user_code: body.user_code })
    await look(`link-confirm-${decision}`)
    await send({}, `button[value=${decision}]`)
    await look(`link-${decision}`)
  }
}

async function administers(world: OauthWorld, name: string, isAdmin: boolean): Promise<void> {
  await world.db.tx((tx) =>
    tx.query(
      'UPDATE account SET is_admin = $2 FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = $1',
      [`@${name}:localhost`, isAdmin],
    ),
  )
}

/** What goes wrong, a forgotten password, and the end of the account. */
export async function walkOutOfAccount({ world, smtp }: House, tour: Tour, name: string): Promise<void> {
  const { open, look, send, page } = tour
  await open(`${world.origin}/_hearth/admin/`)
  await look('console-refused')
  await open(`${world.origin}${ACCOUNT}/sign-in?next=a&next=b`)
  await look('error')
  await open(`${world.origin}/nothing`)
  await look('error-not-found')
  await open(`${world.origin}${ACCOUNT}/sign-out`)
  await look('error-method')
  await open(`${world.origin}${ACCOUNT}/password`)
  await page.context().clearCookies()
  await send({ password: PASSWORD, new_password: NEW_PASSWORD })
  await look('form-expired')

  await open(`${world.origin}${ACCOUNT}/reset`)
  await look('reset')
  const before = smtp.mails.length
  await send({ email: `${name}-with-a-rather-long-name@sub.example.org` })
  await look('reset-sent')
  const aside = await tour.aside()
  await aside.open(await linkIn(smtp, before, world.origin))
  await aside.look('new-password')
  await aside.send()
  await aside.look('new-password-confirmed')
  await aside.close()
  await send()
  await look('reset-password')
  await send({ password: NEW_PASSWORD, repeated: 'another password' })
  await look('reset-unequal')
  await send({ password: NEW_PASSWORD, repeated: NEW_PASSWORD })
  await send({ username: name, password: NEW_PASSWORD })

  world.advance(11 * 60_000)
  await open(`${world.origin}${ACCOUNT}/deactivate`)
  await look('sign-in-again')
  await send({ username: name, password: NEW_PASSWORD })
  await look('deactivate')
  await send({ confirmation: 'something else' })
  await look('deactivate-wrong')
  await send({ confirmation: `@${name}:localhost` })
  await look('deactivated')
}
