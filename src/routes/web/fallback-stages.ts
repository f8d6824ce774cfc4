import { CAPTCHA_VENDORS } from '../../core/captcha-vendors.ts'
import type { JsonObject } from '../../core/json.ts'
import { escapeHtml } from '../../core/template.ts'
import type { Services } from '../../domain/services.ts'
import { emailFallback, msisdnFallback } from './contact-fallback.ts'
import type { FallbackStage } from './fallback-stage.ts'

/** The key with its value, or nothing if the field is absent. */
const given = (key: string, value: string | undefined): JsonObject => (value === undefined ? {} : { [key]: value })

const dummy: FallbackStage = {
  page: () => ({ name: 'fallback-dummy.page' }),
  auth: () => ({}),
}

const password: FallbackStage = {
  page: (_services, { userId }) => ({ name: 'fallback-password.page', values: { user_id: userId } }),
  auth: (fields, _services, { userId }) => ({
    identifier: { type: 'm.id.user', user: userId ?? '' },
    ...given('password', fields.password),
  }),
}

const registrationToken: FallbackStage = {
  page: () => ({ name: 'fallback-registration-token.page' }),
  auth: (fields) => given('token', fields.token?.trim()),
}

const terms: FallbackStage = {
  page: ({ registrationTerms }) => ({
    name: 'fallback-terms.page',
    values: {
      policies: registrationTerms.policies.map(({ version, texts }) => ({
        version,
        texts: texts.map(({ language, name, url }) => ({ language, name, link: url })),
      })),
    },
  }),
  auth: () => ({}),
}

const vendorOf = ({ config }: Services) => {
  const { vendor } = config.registration.captcha
  return vendor === 'none' ? undefined : CAPTCHA_VENDORS[vendor]
}

function widgetOf(services: Services): string {
  const vendor = vendorOf(services)
  if (vendor === undefined) return ''
  const key = escapeHtml(services.config.registration.captcha.site_key ?? '')
  return `<div class="${vendor.widget}" data-sitekey="${key}"></div>\n<script src="${vendor.script}" async defer></script>`
}

const captcha: FallbackStage = {
  page: (services) => ({ name: 'fallback-captcha.page', values: { widget: widgetOf(services) } }),
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
