import ipaddr from 'ipaddr.js'

/** The part of an address that a limit counts by: a whole IPv4 address, or the 64-bit prefix that one IPv6 customer has. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString()}/64`
}
