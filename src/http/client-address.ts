import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

function toRange(text: string): Range {
  if (text.includes('/')) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** Turns `::ffff:192.0.2.1` into 192.0.2.1, and removes a zone or a port. */
export function normaliseIp(text: string): string | undefined {
  const trimmed = text.trim()
  const bare =
    /^\[(.*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? (/^[\d.]+:\d+$/.test(trimmed) ? trimmed.split(':')[0] : trimmed)
  if (bare === undefined || isIP(bare) === 0) return undefined
  return ipaddr.process(bare).toString()
}

/** Makes a test for addresses that are in one of these ranges. */
export function addressMatcher(ranges: readonly string[]): (address: string) => boolean {
  const known = ranges.map(toRange)
  if (known.length === 0) return () => false
  return (text) => {
    const address = ipaddr.process(text)
    return known.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits))
  }
}

/** What stands for the address of the other end of a unix socket. */
export const UNIX_PEER = 'unix'
/** What stands for the address of another node, which is believed about its clients as such a proxy is. */
export const NODE_PEER = 'node'
/** The client of a proxy on a unix socket that names none: it is on this machine. */
const THIS_MACHINE = '127.0.0.1'

/** Finds the client's address from the peer's address and the `X-Forwarded-For` header. */
export type AddressReader = (peer: string | undefined, forwardedFor: string | undefined) => string

/**
 * Reads `X-Forwarded-For` from its right end, as long as the address that added the entry is a trusted proxy. What a
 * client wrote there itself is never used.
 */
export function addressReader(trustedProxies: readonly string[]): AddressReader {
  const isTrusted = addressMatcher(trustedProxies)
  return (peer, forwardedFor) => {
    const hops = forwardedFor?.split(',') ?? []
    let address = (peer && normaliseIp(peer)) || 'unknown'
    if (peer === UNIX_PEER || peer === NODE_PEER) address = normaliseIp(hops.pop() ?? '') ?? THIS_MACHINE
    if (trustedProxies.length === 0 || hops.length === 0 || address === 'unknown') return address
    for (let i = hops.length - 1; i >= 0 && isTrusted(address); i--) {
      const hop = normaliseIp(hops[i] as string)
      if (hop === undefined) break
      address = hop
    }
    return address
  }
}
