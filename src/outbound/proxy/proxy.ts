import type { Socket } from 'node:net'
import type { Config } from '../../config/schema.ts'
import { createNoProxy } from './no-proxy.ts'
import { openTunnel } from './tunnel.ts'

/** The way out through a proxy. */
export interface TunnelProxy {
  /**
   * A connection through the proxy to one of a host's addresses, or undefined if the host is called directly.
   * @param names those of the host, as it is called and as it is connected to
   * @param addresses those that may be called, in the order in which they are tried
   */
  connect(
    names: readonly string[],
    addresses: readonly string[],
    port: number,
    timeoutMs: number,
  ): Promise<Socket | undefined>
}

/** Addresses of a host that are tried; each costs the proxy its patience. */
const MAX_ADDRESSES_TRIED = 2

/** Undefined if the configuration names no proxy. */
export function createProxy({ proxy, no_proxy }: Config['outbound']): TunnelProxy | undefined {
  if (proxy === undefined) return undefined
  const url = new URL(proxy)
  const isPast = createNoProxy(no_proxy)
  return {
    async connect(names, addresses, port, timeoutMs) {
      if (names.some(isPast.name) || addresses.some(isPast.address)) return undefined
      let failure: unknown
      for (const address of addresses.slice(0, MAX_ADDRESSES_TRIED)) {
        try {
          return await openTunnel({ proxy: url, address, port, timeoutMs })
        } catch (error) {
          failure = error
        }
      }
      throw failure
    },
  }
}
