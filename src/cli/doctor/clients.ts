import { splitServerName } from '../../core/ids.ts'
import type { Dialect } from '../../core/paths.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import { discoverAsClient } from '../../outbound/client-discovery.ts'
import { hasAddress } from './addresses.ts'
import { type Examination, type Finding, ok, problem, skipped, warning } from './finding.ts'
import { certificateOf, crossOrigin, MAX_BYTES, TIMEOUT_MS, unreachable } from './reach.ts'

/** Checks the way of a client: from a user's server name to the homeserver's address. */
export async function examineClients(examination: Examination): Promise<readonly Finding[]> {
  const { config } = examination
  const host = splitServerName(config.server_name)?.host ?? config.server_name
  const isThere = await hasAddress(examination, host)
  if (!isThere) return [...(await homeserver(examination)), skipped('well-known', `${host} has no address`)]
  return [
    ...(await homeserver(examination)),
    ...(await Promise.all((['matrix', 'proto'] as const).map((dialect) => wellKnown(examination, host, dialect)))),
    ...(await wellKnownInBrowsers(examination, host)),
  ]
}

async function homeserver({ client, names, config, now }: Examination): Promise<readonly Finding[]> {
  const base = new URL(publicBaseUrl(config))
  const url = `${publicBaseUrl(config)}/_matrix/client/versions`
  const request = { method: 'GET', url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES }
  const port = Number(base.port || (base.protocol === 'https:' ? 443 : 80))
  const answer = await client.request(request)
  if (!answer.ok) {
    const failed = unreachable('homeserver', answer, `${base.hostname}:${port}`)
    return [config.public_base_url === undefined ? { ...failed, advice: 'start Hearth' } : failed]
  }
  if (answer.status !== 200) {
    const advice = 'start Hearth, and see that the proxy passes /_matrix on to it (--proxy shows how)'
    return [problem('homeserver', `${url} answers ${answer.status}`, advice)]
  }
  const addresses = await names.addressesOf(base.hostname).catch(() => [])
  const others = addresses.length < 2 ? [] : addresses
  const each = await Promise.all(
    others.map(async ({ address }): Promise<Finding> => {
      const through = await client.request({ ...request, via: { host: address, port } })
      if (through.ok) return ok(address, 'answers')
      if (/ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL/.test(through.detail))
        return skipped(address, 'cannot be reached from here')
      const advice = 'let it answer there too, or take it out of DNS: some clients try it first'
      return problem(address, `does not answer, while others of ${base.hostname} do: ${through.detail}`, advice)
    }),
  )
  return [ok('homeserver', publicBaseUrl(config)), ...certificateOf(answer, 'its certificate', now()), ...each]
}

async function wellKnown({ client, config }: Examination, host: string, dialect: Dialect): Promise<Finding> {
  const path = `/.well-known/${dialect}/client`
  const found = await discoverAsClient(config.server_name, { client, dialect })
  const hint = `let the web server of https://${host} pass ${path} on to Hearth (--proxy shows how)`
  switch (found.action) {
    case 'SUCCESS': {
      const configured = config.well_known.client_base_url?.replace(/\/+$/, '') ?? publicBaseUrl(config)
      if (found.homeserver === configured) return ok(path, `leads to ${configured}`)
      return warning(path, `leads to ${found.homeserver}, and the configuration says ${configured}`, hint)
    }
    case 'IGNORE':
      return warning(path, `${found.reason}: users have to type ${publicBaseUrl(config)}`, hint)
    default:
      return problem(path, `${found.reason} (${found.action})`, hint)
  }
}

async function wellKnownInBrowsers({ client }: Examination, host: string): Promise<readonly Finding[]> {
  const url = `https://${host}/.well-known/matrix/client`
  const answer = await client.request({ method: 'GET', url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
  // Reported already.
  if (!answer.ok || answer.status !== 200) return []
  return [crossOrigin(answer, 'well-known')]
}
