/** Where a node listens, by its address `host:port`. */
export function placeOf(address: string): { readonly host: string; readonly port: string } {
  const { hostname, port } = new URL(`http://${address}`)
  // An IPv6 address has brackets in a URL only.
  return { host: hostname.replace(/^\[|\]$/g, ''), port }
}
