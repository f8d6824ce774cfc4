import type { Socket } from 'node:net'

/** Connections to the listener for nodes that have not yet shown that they are a node's. */
export interface Strangers {
  enter(socket: Socket): void
  /** A request with a proof came on it. */
  prove(socket: Socket): void
}

/**
 * Ends the oldest of them when there are too many. Nodes bring many clients on connections of one address, so addresses are not counted there:
 * without this, whoever reaches the listener could take all connections that this process may have.
 */
export function createStrangers(max: number): Strangers {
  const unproved = new Set<Socket>()
  return {
    enter(socket) {
      for (const oldest of unproved) {
        if (unproved.size < max) break
        unproved.delete(oldest)
        oldest.destroy()
      }
      unproved.add(socket)
      socket.once('close', () => unproved.delete(socket))
    },
    prove: (socket) => void unproved.delete(socket),
  }
}
