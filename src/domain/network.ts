import ipaddr from 'ipaddr.js'

/** What a limit counts by: an IPv4 address, or the 64-bit network that one IPv6 customer has. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString()}/64`
}
