import { expiring } from '../../domain/calls/turn.ts'
import { type Examination, type Finding, ok, problem, skipped, warning } from './finding.ts'
import { MAX_BYTES, TIMEOUT_MS, unreachable } from './reach.ts'
import { probeTurn, turnPlace } from './turn-probe.ts'

/** How long the credentials of the examination are good for, in seconds. */
const EXAMINED_SECONDS = 300

/** Checks that the TURN servers relay for our credentials, and that LiveKit answers. */
export async function examineCalls(examination: Examination): Promise<readonly Finding[]> {
  const [turn, livekit] = await Promise.all([examineTurn(examination), examineLivekit(examination)])
  return [...turn, livekit]
}

async function examineTurn({ config, now }: Examination): Promise<readonly Finding[]> {
  const { uris, shared_secret, user = '', password = '' } = config.calls.turn
  if (uris.length === 0) {
    return [ok('TURN', 'there is none: calls between people behind NAT or firewalls fail (calls.turn.uris)')]
  }
  const expiresAt = Math.floor(now() / 1000) + EXAMINED_SECONDS
  const credentials =
    shared_secret === undefined
      ? { username: user, password }
      : expiring(shared_secret, `@doctor:${config.server_name}`, expiresAt)
  return Promise.all(
    uris.map(async (uri): Promise<Finding> => {
      const place = turnPlace(uri)
      if (place === undefined) return skipped('TURN', `${uri}: only turn: and turns: addresses are looked at`)
      const verdict = await probeTurn(place, credentials)
      if (verdict.kind === 'granted') return ok('TURN', `${uri} relays`)
      if (verdict.kind === 'silent') {
        const advice = `let the TURN server listen at ${place.host}:${place.port} (${place.transport}), and open the firewall for it`
        return problem('TURN', `${uri}: ${verdict.detail}`, advice)
      }
      const advice =
        verdict.code === 401
          ? 'compare calls.turn.shared_secret with static-auth-secret (with use-auth-secret), and the clocks of both machines'
          : 'see the log of the TURN server'
      return problem('TURN', `${uri} refuses our credentials (${verdict.code})`, advice)
    }),
  )
}

async function examineLivekit({ config, client }: Examination): Promise<Finding> {
  const { url, api_url } = config.calls.livekit
  if (url === undefined) return ok('LiveKit', 'calls of groups are off (calls.livekit.url)')
  const base = (api_url ?? url.replace(/^ws/, 'http')).replace(/\/+$/, '')
  const answer = await client.request({ method: 'GET', url: base, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
  if (!answer.ok) return unreachable('LiveKit', answer, new URL(base).host)
  if (answer.status >= 400) {
    return problem(
      'LiveKit',
      `${base} answers ${answer.status}`,
      'see calls.livekit.api_url: LiveKit answers 200 there',
    )
  }
  if (url.startsWith('ws:') && !/^ws:\/\/(?:localhost|127\.|\[::1\])/.test(url)) {
    return warning('LiveKit', `${url} is without TLS: browsers refuse it`, 'use a wss address in calls.livekit.url')
  }
  return ok('LiveKit', `${base} answers`)
}
