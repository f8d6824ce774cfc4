import { SMS_PRESETS } from '../../outbound/sms.ts'
import { type Examination, type Finding, ok, problem, warning } from './finding.ts'

const PATIENCE_MS = 10_000
const MAX_BYTES = 65_536

/** Checks that the host of the gateway for text messages answers, by a request for its front page. Sends no message. */
export async function examineSms({ config, client }: Examination): Promise<Finding> {
  const { sms } = config.identity
  if (sms.gateway === 'none') return ok('SMS', 'phone numbers are refused (identity.sms.gateway)')
  if (sms.gateway === 'outbox') {
    const text = 'no gateway: messages become files, and nobody can validate a phone number'
    return warning('SMS', text, 'set identity.sms.gateway, or to `none` if you want no phone numbers')
  }
  const protocol = sms.gateway === 'http' ? sms.http : SMS_PRESETS[sms.gateway]
  // The path may hold templates and secrets, and so may what stands before the host.
  const origin = /^https?:\/\/[^/?#{]+/.exec(protocol.url)?.[0].replace(/\/\/.*@/, '//')
  const advice = 'see identity.sms.http.url; an address that is not public needs outbound.allow_ranges'
  if (origin === undefined) return problem('SMS', 'the gateway has no http address', advice)
  const request = { method: 'GET', url: `${origin}/`, timeoutMs: PATIENCE_MS, maxBytes: MAX_BYTES }
  const answer = await client.request(request)
  if (!answer.ok) return problem('SMS', `${origin} cannot be asked: ${answer.detail}`, advice)
  if (origin.startsWith('http:') && !/^http:\/\/(?:localhost|127\.|\[::1\])/.test(origin)) {
    return warning('SMS', `${origin} answers, without encryption`, 'use an https address in identity.sms.http.url')
  }
  return ok('SMS', `${origin} answers (${sms.gateway}); nothing was sent`)
}
