import { isIP } from 'node:net'
import { createRangeMatcher } from '../addresses.ts'

/** What is called directly, past the proxy. */
export interface PastProxy {
  name(host: string): boolean
  address(address: string): boolean
}

/** @param entries names, which stand for their subdomains too, and addresses or ranges */
export function createNoProxy(entries: readonly string[]): PastProxy {
  const isRange = (entry: string): boolean => isIP(entry.split('/')[0] ?? '') !== 0
  const names = entries.filter((entry) => !isRange(entry)).map((entry) => entry.toLowerCase().replace(/^\*?\./, ''))
  return {
    name: (host) => names.some((name) => host === name || host.endsWith(`.${name}`)),
    address: createRangeMatcher(entries.filter(isRange)),
  }
}
