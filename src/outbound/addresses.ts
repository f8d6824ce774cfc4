import { isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

const ranges = (texts: readonly string[]): readonly Range[] => texts.map(readRange)

/** IANA assigns global addresses from this range only, and uses these parts of it for other purposes. */
const GLOBAL_V6 = ranges(['2000::/3'])
const NOT_GLOBAL_V6 = ranges(['2001::/23', '2001:db8::/32', '3fff::/20'])

/** Ranges of IPv6 addresses that lead to an embedded IPv4 address: the range, and the index of the first of its four bytes. */
const EMBEDDING: readonly (readonly [Range, number])[] = [
  [readRange('::ffff:0:0/96'), 12],
  [readRange('64:ff9b::/96'), 12],
  [readRange('2002::/16'), 2],
]

/** Whether this server may connect to an IP address, given as text. */
export type AddressGuard = (address: string) => boolean

/**
 * Allows addresses on the public internet, and the ranges that the operator allows.
 *
 * @param allowed addresses and CIDR ranges
 */
export function createAddressGuard(allowed: readonly string[]): AddressGuard {
  const open = ranges(allowed)
  return (text) => {
    const usual = usualSpelling(text)
    return usual !== undefined && (isIn(ipaddr.process(usual), open) || isPublic(ipaddr.parse(usual)))
  }
}

/** Whether an address is in one of these addresses or ranges. */
export function createRangeMatcher(texts: readonly string[]): (address: string) => boolean {
  const list = ranges(texts)
  return (text) => {
    const usual = usualSpelling(text)
    return usual !== undefined && isIn(ipaddr.process(usual), list)
  }
}

/** An address in the spelling of URLs. The package also accepts other texts, and reads `::8.8.8.8` as `::ffff:8.8.8.8`. */
function usualSpelling(text: string): string | undefined {
  if (isIP(text) !== 6) return isIP(text) === 4 ? text : undefined
  const url = `http://[${text}]/`
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : undefined
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  // `unicast` stands for the public internet, and for addresses in no list, which are public too.
  if (address.kind() === 'ipv4') return address.range() === 'unicast'
  const bytes = address.toByteArray()
  const embedded = EMBEDDING.find(([range]) => isIn(address, [range]))
  if (embedded !== undefined) return isPublic(ipaddr.fromByteArray(bytes.slice(embedded[1], embedded[1] + 4)))
  return isIn(address, GLOBAL_V6) && !isIn(address, NOT_GLOBAL_V6)
}

function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, list: readonly Range[]): boolean {
  return list.some(([base, bits]) => base.kind() === address.kind() && address.match(base as ipaddr.IPv4, bits))
}

function readRange(text: string): Range {
  return text.includes('/') ? ipaddr.parseCIDR(text) : [ipaddr.parse(text), isIPv6(text) ? 128 : 32]
}
