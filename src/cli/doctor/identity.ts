import { identityBaseUrl } from '../../domain/public-address.ts'
import { type Examination, type Finding, ok, problem } from './finding.ts'
import { certificateOf, crossOrigin, MAX_BYTES, TIMEOUT_MS, unreachable } from './reach.ts'

/** Checks that clients and homeservers reach the identity service at its public address. */
export async function examineIdentity({ client, config, now }: Examination): Promise<readonly Finding[]> {
  const base = identityBaseUrl(config)
  const { host, protocol } = new URL(base)
  const url = `${base}/_matrix/identity/v2`
  const answer = await client.request({ method: 'GET', url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
  if (!answer.ok) return [unreachable('identity service', answer, host)]
  if (answer.status !== 200) {
    const advice = 'start Hearth, and see that the proxy passes /_matrix/identity on to it (--proxy shows how)'
    return [problem('identity service', `${url} answers ${answer.status}`, advice)]
  }
  const overTls =
    protocol === 'https:'
      ? ok('identity service', base)
      : problem('identity service', `${base} is without TLS`, 'set identity.base_url to an https:// address')
  return [overTls, ...certificateOf(answer, 'certificate', now()), crossOrigin(answer, 'in browsers')]
}
