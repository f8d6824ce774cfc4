import { isIP } from 'node:net'
import type { Config } from '../../config/schema.ts'
import { splitServerName } from '../../core/ids.ts'
import { isIdentityServed } from '../../domain/identity/is-served.ts'
import { identityBaseUrl, publicBaseUrl } from '../../domain/public-address.ts'
import { createAddressGuard } from '../../outbound/addresses.ts'
import { type Examination, type Finding, ok, problem, warning } from './finding.ts'

/** Checks the names of this server: whether others can resolve and reach them. */
export async function examineAddresses(examination: Examination): Promise<readonly Finding[]> {
  const { config } = examination
  const hosts = namesOf(config)
    .map((name) => splitServerName(name)?.host ?? name)
    .filter((host) => isIP(host.replace(/^\[|\]$/g, '')) === 0)
  return Promise.all([...new Set(hosts)].map((host) => examineHost(host, examination)))
}

function namesOf(config: Config): readonly string[] {
  const base = new URL(publicBaseUrl(config)).host
  const identity = isIdentityServed(config) ? [new URL(identityBaseUrl(config)).host] : []
  if (!config.roles.includes('client')) return identity
  return [config.server_name, config.well_known.server ?? config.server_name, base, ...identity]
}

/** Whether a host has an address. If not, {@link examineAddresses} reports it. */
export async function hasAddress({ names }: Examination, host: string): Promise<boolean> {
  const isLiteral = isIP(host.replace(/^\[|\]$/g, '')) !== 0
  return isLiteral || (await names.addressesOf(host).catch(() => [])).length > 0
}

async function examineHost(host: string, { names, config }: Examination): Promise<Finding> {
  const isOpen = createAddressGuard(config.outbound.allow_ranges)
  const addresses = await names.addressesOf(host).catch(() => [])
  const shown = addresses.map(({ address }) => address).join(', ')
  if (addresses.length === 0) {
    const advice = `add an A record (and AAAA, where you have IPv6) for ${host} at your DNS provider`
    return problem(host, 'has no address in DNS', advice)
  }
  const closed = addresses.filter(({ address }) => !isOpen(address))
  if (closed.length === 0) return ok(host, shown)
  const advice = `point it at a public address; if all that should reach it are inside too, allow the network in outbound.allow_ranges`
  const text = `${closed.map(({ address }) => address).join(', ')} cannot be reached from the internet`
  return closed.length === addresses.length ? problem(host, text, advice) : warning(host, text, advice)
}
