import type { SrvRecord } from 'node:dns'
import { isIP } from 'node:net'
import { createCache } from '../core/cache.ts'
import { splitServerName } from '../core/ids.ts'
import { MAX_HOSTS_PER_SERVER, MAX_REMEMBERED_SERVERS } from './limits.ts'
import type { Names } from './names.ts'
import type { WellKnown } from './well-known.ts'

/** Where requests to a server go. */
export interface ServerTarget {
  /** `https://` and the name for the `Host` header and the certificate. */
  readonly origin: string
  /** Where to connect. */
  readonly via: { readonly host: string; readonly port: number }
}

export interface DiscoveredServer {
  /** In the order of trying; empty if the server says that it has no service. */
  readonly targets: readonly ServerTarget[]
  /** The steps of the discovery, in words, for operators. */
  readonly steps: readonly string[]
}

/** Finds servers by their names (server-server API, "Server discovery"). */
export interface Discovery {
  find(server: string): Promise<DiscoveredServer>
}

const DEFAULT_PORT = 8448
const SERVICES = ['_matrix-fed._tcp', '_matrix._tcp']
const SRV_LIFE_MS = 5 * 60_000

interface FoundServices {
  readonly service: string
  readonly records: readonly SrvRecord[]
  readonly until: number
}

export function createDiscovery(deps: {
  readonly names: Names
  readonly wellKnown: WellKnown
  readonly now: () => number
  /** In [0, 1): chooses among hosts of the same priority. */
  readonly random: () => number
}): Discovery {
  const { names, wellKnown, now, random } = deps
  const services = createCache<string, FoundServices>(MAX_REMEMBERED_SERVERS)

  async function servicesOf(host: string): Promise<FoundServices> {
    const known = services.get(host)
    if (known !== undefined && known.until > now()) return known
    for (const service of SERVICES) {
      // A failure of the name servers says nothing about the service, and the next step asks them again.
      const records = await names.servicesOf(`${service}.${host}`).catch(() => undefined)
      if (records === undefined || records.length === 0) continue
      const found = { service, records, until: now() + SRV_LIFE_MS }
      services.set(host, found)
      return found
    }
    const none = { service: '', records: [], until: now() + SRV_LIFE_MS }
    services.set(host, none)
    return none
  }

  /** Steps 4 to 6 of the specification, and 3.3 to 3.5 for the host that was delegated to. */
  async function byService(host: string): Promise<DiscoveredServer> {
    const origin = `https://${host}`
    const { service, records } = await servicesOf(host.toLowerCase())
    if (records.length === 0) {
      const steps = [`no SRV record for ${host}: port ${DEFAULT_PORT}`]
      return { targets: [{ origin, via: { host, port: DEFAULT_PORT } }], steps }
    }
    const usable = records.filter(({ name, port }) => port !== 0 && name !== '' && name !== '.')
    const targets = inTurn(usable, random)
      .slice(0, MAX_HOSTS_PER_SERVER)
      .map(({ name, port }) => ({ origin, via: { host: name, port } }))
    const places = targets.map(({ via }) => `${via.host}:${via.port}`).join(', ')
    return { targets, steps: [`SRV ${service}.${host}: ${places || 'no service'}`] }
  }

  /** Steps 1 and 2: names that are an address, or have a port. */
  function direct(name: string): DiscoveredServer | undefined {
    const { host, port } = splitServerName(name) ?? { host: '', port: 0 }
    if (host === '' || port === 0) return { targets: [], steps: [`"${name}" is no server name that can be called`] }
    const isLiteral = isIP(host.replace(/^\[|\]$/g, '')) !== 0
    if (!isLiteral && port === undefined) return undefined
    const via = { host, port: port ?? DEFAULT_PORT }
    const how = isLiteral ? 'an IP address' : 'a port'
    return { targets: [{ origin: `https://${name}`, via }], steps: [`${name} has ${how}: ${via.host}:${via.port}`] }
  }

  return {
    async find(server) {
      const own = direct(server)
      if (own !== undefined) return own
      const delegate = await wellKnown.delegateOf(server)
      if (delegate === undefined) {
        const { targets, steps } = await byService(server)
        return { targets, steps: [`${server} delegates to no other server`, ...steps] }
      }
      const { targets, steps } = direct(delegate) ?? (await byService(delegate))
      return { targets, steps: [`${server} delegates to ${delegate}`, ...steps] }
    },
  }
}

/** Ordered by priority; within one priority at random, in proportion to the weights (RFC 2782). */
function inTurn(records: readonly SrvRecord[], random: () => number): readonly SrvRecord[] {
  const drawn = records.map((record) => ({ record, lot: random() ** (1 / Math.max(record.weight, 0.01)) }))
  return drawn
    .sort((left, right) => left.record.priority - right.record.priority || right.lot - left.lot)
    .map(({ record }) => record)
}
