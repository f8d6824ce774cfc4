import { Agent, type ClientRequest, type RequestOptions, request } from 'node:http'
import { IDLE_CONNECTION_MS, LAST_ANSWERS_MS, LONGEST_ANSWERS_MS } from '../../domain/limits/cluster.ts'

/** Requests on their way to the node that serves, and the connections that they share. */
export interface Outgoing {
  send(options: RequestOptions): Sent
  /** Another node serves: what the one before has not begun to answer soon is taken back, and the rest ends later. */
  turnAway(): void
  /** Ends all at once. */
  giveUp(): void
}

export interface Sent {
  readonly out: ClientRequest
  /** To be called when its answer begins, or when none comes. */
  heard(): void
}

/** @param idleMs how long a connection is kept that nothing is sent on; shorter in tests */
export function createOutgoing(idleMs = IDLE_CONNECTION_MS): Outgoing {
  // The other node keeps it for longer, so that it never ends one on which a request is just being sent.
  const connections = () => new Agent({ keepAlive: true, timeout: idleMs })
  let agent = connections()
  let unheard = new Set<ClientRequest>()
  return {
    send(options) {
      const among = unheard
      const out = request({ ...options, agent })
      among.add(out)
      return { out, heard: () => void among.delete(out) }
    },
    turnAway() {
      const [before, waiting] = [agent, unheard]
      const takeBack = (): void => {
        for (const out of waiting) out.destroy()
      }
      // What has come while this process had to wait for the processor is read first.
      setTimeout(() => setImmediate(takeBack), LAST_ANSWERS_MS).unref()
      setTimeout(() => before.destroy(), LONGEST_ANSWERS_MS).unref()
      agent = connections()
      unheard = new Set()
    },
    giveUp: () => agent.destroy(),
  }
}
