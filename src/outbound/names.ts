import { promises as dns, type LookupAddress, type SrvRecord } from 'node:dns'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'

/** A name that has no address, or whose servers do not answer. */
export class NameError extends Error {
  constructor(host: string, reason: string) {
    super(`${host} cannot be resolved: ${reason}`)
    this.name = 'NameError'
  }
}

export interface Names {
  /** The addresses of a host. @throws NameError when there is none */
  addressesOf(host: string): Promise<readonly LookupAddress[]>
  /** The SRV records of a name, undefined if it has none. @throws NameError if the name servers do not answer */
  servicesOf(name: string): Promise<readonly SrvRecord[] | undefined>
}

const TIMEOUT_MS = 3_000
const TRIES = 2
const HOSTS_FILE = '/etc/hosts'
/** Error codes for "there is no such record". */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Resolves names without the thread pool, which dead name servers could block. It reads the hosts file, then asks the name servers of the
 * system, and for names unknown there uses the system's own resolver, which knows search domains and the like.
 *
 * @param servers name servers instead of the system's
 */
export function createNames(servers?: readonly string[]): Names {
  const resolver = new dns.Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers)

  async function ask(host: string): Promise<readonly LookupAddress[]> {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const [v4, v6] = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const found = [...v4!.map((address) => ({ address, family: 4 })), ...v6!.map((address) => ({ address, family: 6 }))]
    if (found.length > 0) return found
    const [reason = 'ENODATA'] = answers.flatMap((answer) =>
      answer.status === 'rejected' ? [codeOf(answer.reason)] : [],
    )
    if (servers !== undefined || !(ABSENT.has(reason) || reason === 'ECONNREFUSED')) throw new NameError(host, reason)
    return dns.lookup(host, { all: true }).catch((error: unknown) => {
      throw new NameError(host, codeOf(error))
    })
  }

  return {
    async addressesOf(host) {
      const known = await fromHostsFile(host)
      return known.length > 0 ? known : ask(host)
    },
    async servicesOf(name) {
      try {
        return await resolver.resolveSrv(name)
      } catch (error) {
        if (ABSENT.has(codeOf(error))) return undefined
        throw new NameError(name, codeOf(error))
      }
    },
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error)
}

async function fromHostsFile(host: string): Promise<readonly LookupAddress[]> {
  const text = await readFile(HOSTS_FILE, 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    return family !== 0 && names.some((name) => name.toLowerCase() === host.toLowerCase()) ? [{ address, family }] : []
  })
}
