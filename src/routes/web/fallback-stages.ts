import { CAPTCHA_VENDORS } from '../../core/captcha-vendors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Services } from '../../domain/services.ts'
import { emailFallback, msisdnFallback } from './contact-fallback.ts'
import type { FallbackStage } from './fallback-stage.ts'
import { escapeHtml } from './page.ts'

const input = (label: string, attributes: string): string => `<label>${label}<input ${attributes} required></label>`

/** A field that was left out is left out. */
const given = (key: string, value: string | undefined): JsonObject => (value === undefined ? {} : { [key]: value })

const dummy: FallbackStage = {
  heading: 'One more step',
  content: () => '<p>Nothing needs to be entered here.</p>',
  button: () => 'Continue',
  auth: () => ({}),
}

const password: FallbackStage = {
  heading: 'Confirm that it is you',
  content: (_services, { userId }) => `<p>Enter the password of ${
    userId === undefined ? 'your account' : `<strong>${escapeHtml(userId)}</strong>`
  } to go on.</p>
${input('Password', 'type="password" name="password" autocomplete="current-password"')}`,
  button: () => 'Continue',
  auth: (fields, _services, { userId }) => ({
    identifier: { type: 'm.id.user', user: userId ?? '' },
    ...given('password', fields.password),
  }),
}

const registrationToken: FallbackStage = {
  heading: 'Enter your registration token',
  content: () => `<p>Accounts here are made with a token. Ask the people who run this server for one.</p>
${input('Token', 'type="text" name="token" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="64"')}`,
  button: () => 'Continue',
  auth: (fields) => given('token', fields.token?.trim()),
}

const terms: FallbackStage = {
  heading: 'Please read and accept',
  content: ({ registrationTerms }) =>
    registrationTerms.policies
      .map(({ version, texts }) => {
        const links = texts.map(
          ({ language, name, url }) =>
            `<a href="${escapeHtml(url)}" target="_blank" rel="noreferrer" hreflang="${escapeHtml(language)}">${escapeHtml(name)}</a>`,
        )
        return `<label class="choice"><input type="checkbox" name="accepted" value="yes" required><span>${links.join(' · ')} (version ${escapeHtml(version)})</span></label>`
      })
      .join('\n'),
  button: () => 'Accept and continue',
  auth: () => ({}),
}

const vendorOf = ({ config }: Services) => {
  const { vendor } = config.registration.captcha
  return vendor === 'none' ? undefined : CAPTCHA_VENDORS[vendor]
}

const captcha: FallbackStage = {
  heading: 'Are you a person?',
  content(services) {
    const vendor = vendorOf(services)
    if (vendor === undefined) return ''
    const key = escapeHtml(services.config.registration.captcha.site_key ?? '')
    return `<p>Solve this so that we know you are not a program.</p>
<div class="${vendor.widget}" data-sitekey="${key}"></div>
<script src="${vendor.script}" async defer></script>
<noscript><p class="problem">This needs JavaScript. Allow it for this page, or ask the people who run this server for an account.</p></noscript>`
  },
  button: () => 'Continue',
  vendor: (services) => vendorOf(services)?.origins ?? [],
  auth: (fields, services) => given('response', fields[vendorOf(services)?.answer ?? ''] || undefined),
}

export const FALLBACK_STAGES: ReadonlyMap<string, FallbackStage> = new Map([
  ['m.login.dummy', dummy],
  ['m.login.password', password],
  ['m.login.registration_token', registrationToken],
  ['m.login.terms', terms],
  ['m.login.recaptcha', captcha],
  ['m.login.email.identity', emailFallback],
  ['m.login.msisdn', msisdnFallback],
])
