import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CAPTCHA_VENDORS } from '../../../src/core/captcha-vendors.ts'
import { type OauthWorld, openOauthWorld } from '../../oauth/world.ts'
import { type CaptchaVendorServer, GOOD_ANSWER, startCaptchaVendor } from '../../support/captcha-vendor.ts'
import type { FakeGateway } from '../../support/sms-gateway.ts'
import type { SmtpSink } from '../../support/smtp.ts'
import { linkIn } from './letters.ts'
import type { Tour } from './tour.ts'

const SECRET = 'a secret of the captcha'

/** A server that asks for everything before it makes an account. */
export interface StrictHouse {
  readonly world: OauthWorld
  close(): Promise<void>
}

const policy = (id: string, en: string, de: string, link?: string) => ({
  id,
  version: '1.2',
  languages: [
    { language: 'en', name: en, ...(link && { url: `${link}/en` }) },
    { language: 'de', name: de, ...(link && { url: `${link}/de` }) },
  ],
})

const TEXT = `# What we keep

We keep what you write, and nothing else.

- your name
- your addresses

# For how long

Until you delete it.`

export async function openStrictHouse(messages: object): Promise<StrictHouse> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-policies-'))
  for (const language of ['en', 'de']) await writeFile(join(directory, `privacy-1.2-${language}.txt`), TEXT)
  const vendor: CaptchaVendorServer = await startCaptchaVendor(SECRET)
  const captcha = { vendor: 'recaptcha', site_key: 'site-key', secret: SECRET, verify_url: vendor.url }
  const policies = [
    policy('privacy', 'Privacy policy', 'Datenschutzerklärung'),
    policy('terms', 'Terms of use', 'Nutzungsbedingungen', 'https://example.org/terms'),
  ]
  const world = await openOauthWorld({
    registration: {
      enabled: true,
      token: 'let-me-in',
      require_token: true,
      email: 'required',
      msisdn: 'required',
      captcha,
      terms: { directory, policies },
    },
    identity: messages,
  })
  return {
    world,
    async close() {
      await world.close()
      await vendor.close()
      await rm(directory, { recursive: true })
    },
  }
}

/** The vendor's script, that cannot be had here: it leaves an answer as the real one does. */
const WIDGET = `for (const place of document.querySelectorAll('.g-recaptcha')) {
  const field = document.createElement('textarea')
  field.name = 'g-recaptcha-response'
  field.hidden = true
  place.append(field, 'Here is the captcha of the vendor.')
}`

/** Every stage of a registration, for a client that leaves it to the browser. */
export async function walkThroughStages(
  { world }: StrictHouse,
  { smtp, gateway }: { readonly smtp: SmtpSink; readonly gateway: FakeGateway },
  tour: Tour,
): Promise<void> {
  const { open, look, send, page } = tour
  await page
    .context()
    .route(`${CAPTCHA_VENDORS.recaptcha.script}*`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: WIDGET }),
    )
  const { session } = (await world.api.request('POST', '/register', { body: {} })).body
  const at = (stage: string) =>
    open(`${world.origin}/_matrix/client/v3/auth/${stage}/fallback/web?session=${encodeURIComponent(session)}`)
  const order = (await world.api.request('POST', '/register', { body: {} })).body.flows[0].stages as string[]
  const stages: Record<string, () => Promise<void>> = {
    async 'm.login.registration_token'() {
      await look('stage-token')
      await send({ token: 'mistyped' })
      await look('stage-token-wrong')
      await send({ token: 'let-me-in' })
      await look('stage-done')
    },
    async 'm.login.recaptcha'() {
      await look('stage-captcha')
      await send()
      await look('stage-captcha-missing')
      await page.evaluate("document.querySelector('[name=g-recaptcha-response]').value = 'bad'")
      await send()
      await look('stage-captcha-wrong')
      await page.evaluate(
        `document.querySelector('[name=g-recaptcha-response]').value = '${GOOD_ANSWER}-${tour.language}'`,
      )
      await send()
    },
    async 'm.login.terms'() {
      await look('stage-terms')
      for (const box of await page.getByRole('checkbox').all()) await box.check()
      await send()
    },
    async 'm.login.email.identity'() {
      await look('stage-email')
      const before = smtp.mails.length
      await send({ email: `newcomer-${tour.language}@example.org` })
      await look('stage-email-sent')
      await send()
      await look('stage-email-too-soon')
      const aside = await tour.aside()
      await aside.open(await linkIn(smtp, before, world.origin))
      await aside.close()
      await send()
    },
    async 'm.login.msisdn'() {
      await look('stage-phone')
      await send({ number: '07400 123456' })
      await look('stage-phone-local')
      const before = gateway.requests.length
      await send({ number: `+44 7400 9${before.toString().padStart(5, '0')}` })
      await look('stage-phone-sent')
      const code = /\b(\d{6})\b/.exec(JSON.stringify(gateway.requests.slice(before)))?.[1] ?? ''
      await send({ token: code === '000000' ? '000001' : '000000' })
      await look('stage-phone-wrong')
      await send({ token: code })
    },
  }
  for (const stage of order) {
    await at(stage)
    await stages[stage]?.()
  }
  await open(`${world.origin}/_matrix/client/v3/auth/m.login.terms/fallback/web?session=nobody`)
  await look('stage-lost')
  await open(`${world.origin}/policies/privacy/1.2/${tour.language}`)
  await look('policy')
  // The first of the same stages, where an account is made in the browser.
  await open(`${world.origin}/_hearth/account/sign-up`)
  await look('sign-up-token')
}

/** The stages of somebody who has an account, or who is asked for nothing. */
export async function walkThroughProofs(world: OauthWorld, tour: Tour, name: string): Promise<void> {
  const { open, look, send } = tour
  const at = (stage: string, session: string) =>
    open(`${world.origin}/_matrix/client/v3/auth/${stage}/fallback/web?session=${encodeURIComponent(session)}`)
  const { session } = (await world.api.request('POST', '/register', { body: {} })).body
  await at('m.login.dummy', session)
  await look('stage-dummy')
  const { token, deviceId } = await world.account(name)
  const asked = await world.api.request('DELETE', `/devices/${deviceId}`, { token, body: {} })
  await at('m.login.password', asked.body.session)
  await look('stage-password')
  await send({ password: 'wrong' })
  await look('stage-password-wrong')
}
