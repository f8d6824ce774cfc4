import type { Failure } from '../../outbound/failures.ts'
import type { HttpAnswer } from '../../outbound/http.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

export const TIMEOUT_MS = 10_000
export const MAX_BYTES = 65_536
const DAY_MS = 86_400_000

/** Advice for an operator about an address that does not answer. */
export function adviceFor({ kind }: Failure, place: string): string {
  switch (kind) {
    case 'dns':
      return `add an A record (and AAAA, where you have IPv6) for ${place.replace(/:\d+$/, '')} at your DNS provider`
    case 'connect':
      return `let something listen at ${place}, and open the port in the firewall`
    case 'tls':
      return `get a certificate for the name ${place.replace(/:\d+$/, '')}, with its whole chain (certbot, or Caddy by itself)`
    case 'timeout':
      return `see whether a firewall drops what comes to ${place}, and whether the proxy reaches Hearth`
    default:
      return `see what listens at ${place}: it does not answer as a web server that passes on to Hearth (--proxy shows how)`
  }
}

export function unreachable(subject: string, failure: Failure, place: string): Finding {
  return problem(subject, `${place}: ${failure.detail}`, adviceFor(failure, place))
}

/** A finding about the certificate's remaining time. */
export function certificateOf(answer: HttpAnswer, subject: string, now: number): readonly Finding[] {
  if (answer.certificate === undefined) return []
  const days = Math.floor((answer.certificate.validUntil - now) / DAY_MS)
  const text = `good for ${days} more days, by ${answer.certificate.issuer || 'an authority without a name'}`
  if (days >= 14) return [ok(subject, text)]
  return [warning(subject, text, 'renew it now, and see why that did not happen by itself')]
}

/** Checks for a single `*`: browsers refuse two values, which occur if a proxy adds its own header. */
export function crossOrigin({ headers }: HttpAnswer, subject: string): Finding {
  const allowed = headers['access-control-allow-origin']
  if (allowed === '*') return ok(subject, 'may be asked by web clients')
  if (allowed === undefined) {
    return problem(
      subject,
      'lacks Access-Control-Allow-Origin: web clients cannot use it',
      'pass it on to Hearth, which sends it',
    )
  }
  const advice = 'remove add_header Access-Control-Allow-Origin, or the like, from the proxy: Hearth sends it'
  return problem(subject, `Access-Control-Allow-Origin is "${allowed}": browsers refuse it`, advice)
}
