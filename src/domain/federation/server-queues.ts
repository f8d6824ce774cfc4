import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import { MAX_WAITING_PEER_BYTES } from '../limits.ts'

/** What servers ask is done in turn for each, so that one which asks much waits for itself and nobody else does. */
export interface ServerQueues {
  /**
   * Does the work of a server when its turn comes.
   *
   * @param bytes that are kept in memory while it waits
   * @throws ProtocolError 429 `M_LIMIT_EXCEEDED` with `retry_after_ms` where too much waits already
   */
  run<T>(server: ServerName, bytes: number, work: () => T | Promise<T>): Promise<T>
  /** How many requests wait, of all servers. */
  waiting(): number
}

interface Queue {
  running: number
  readonly waiting: (() => void)[]
}

const RETRY_AFTER_MS = 3_000

export function createServerQueues({ config }: { readonly config: Pick<Config, 'federation'> }): ServerQueues {
  const { requests_at_once: atOnce, requests_waiting: mayWait } = config.federation
  const queues = new Map<ServerName, Queue>()
  let waiting = 0
  let waitingBytes = 0

  function queueOf(server: ServerName): Queue {
    const known = queues.get(server)
    if (known !== undefined) return known
    const made = { running: 0, waiting: [] }
    queues.set(server, made)
    return made
  }

  async function turn(queue: Queue, bytes: number): Promise<void> {
    if (queue.waiting.length >= mayWait || waitingBytes + bytes > MAX_WAITING_PEER_BYTES) {
      throw new ProtocolError('M_LIMIT_EXCEEDED', 'Too many requests of your server wait here already.', {
        extra: { retry_after_ms: RETRY_AFTER_MS },
      })
    }
    waiting++
    waitingBytes += bytes
    await new Promise<void>((resolve) => queue.waiting.push(resolve))
    waiting--
    waitingBytes -= bytes
  }

  return {
    async run(server, bytes, work) {
      const queue = queueOf(server)
      // A place that becomes free goes to the first who waits without being counted down in between.
      if (queue.running < atOnce) queue.running++
      else await turn(queue, bytes)
      try {
        return await work()
      } finally {
        const next = queue.waiting.shift()
        if (next !== undefined) next()
        else if (--queue.running === 0) queues.delete(server)
      }
    },
    waiting: () => waiting,
  }
}
