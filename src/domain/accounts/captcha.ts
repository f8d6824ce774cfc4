import type { Config } from '../../config/schema.ts'
import { CAPTCHA_VENDORS } from '../../core/captcha-vendors.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import { verifyCaptcha } from '../../outbound/verdicts/captcha.ts'
import { MAX_CAPTCHA_ANSWER_CHARS } from '../limits.ts'
import type { UiaStage } from './interactive-auth.ts'

export const CAPTCHA_STAGE = 'm.login.recaptcha'

/** The stage `m.login.recaptcha`, for any vendor (client-server API, "Google ReCaptcha"); undefined where none is configured. */
export function captchaStage(deps: {
  readonly config: Pick<Config, 'registration'>
  readonly client: Pick<GuardedClient, 'request'>
}): UiaStage | undefined {
  const { vendor, site_key = '', secret = '', verify_url } = deps.config.registration.captcha
  if (vendor === 'none') return undefined
  const url = verify_url ?? CAPTCHA_VENDORS[vendor].verifyUrl
  return {
    params: () => ({ public_key: site_key }),
    async prove({ response }) {
      if (typeof response !== 'string' || response === '') {
        throw new ProtocolError('M_CAPTCHA_NEEDED', 'Please solve the captcha.')
      }
      const verdict =
        response.length > MAX_CAPTCHA_ANSWER_CHARS
          ? 'invalid'
          : await verifyCaptcha(deps.client, { url, secret, response })
      if (verdict === 'unavailable') {
        throw new ProtocolError('M_UNKNOWN', 'The captcha cannot be verified now. Try again later.', { status: 503 })
      }
      if (verdict === 'invalid') throw new ProtocolError('M_CAPTCHA_INVALID', 'That was not right. Please try again.')
      return {}
    },
  }
}
