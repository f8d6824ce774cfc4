import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import type { Cancellation } from '../cancellation.ts'
import { MAX_WAITING_PEER_BYTES } from '../limits.ts'

/** Each server's requests have their own queue, so a server that sends many delays only itself. */
export interface ServerQueues {
  /**
   * Runs a server's work when its turn comes.
   *
   * @param held the bytes of memory that it holds while it waits, and the signal that nobody waits for the answer any more
   * @throws ProtocolError 429 `M_LIMIT_EXCEEDED` with `retry_after_ms` if too much waits already
   */
  run<T>(server: ServerName, held: Held, work: () => T | Promise<T>): Promise<T>
  /** How many requests wait, of all servers. */
  waiting(): number
}

export interface Held {
  readonly bytes: number
  readonly signal: Cancellation
}

interface Queue {
  running: number
  /** In the order of arrival. */
  readonly waiting: Set<() => void>
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
    const made = { running: 0, waiting: new Set<() => void>() }
    queues.set(server, made)
    return made
  }

  async function turn(queue: Queue, { bytes, signal }: Held): Promise<void> {
    if (queue.waiting.size >= mayWait || waitingBytes + bytes > MAX_WAITING_PEER_BYTES) {
      throw new ProtocolError('M_LIMIT_EXCEEDED', 'Too many requests of your server wait here already.', {
        extra: { retry_after_ms: RETRY_AFTER_MS },
      })
    }
    waiting++
    waitingBytes += bytes
    try {
      await placeIn(queue, signal)
    } finally {
      waiting--
      waitingBytes -= bytes
    }
  }

  return {
    async run(server, held, work) {
      const queue = queueOf(server)
      // A free place goes directly to the first one that waits, so `running` is not counted down in between.
      if (queue.running < atOnce) queue.running++
      else await turn(queue, held)
      try {
        return await work()
      } finally {
        const [next] = queue.waiting
        if (next !== undefined) next()
        else if (--queue.running === 0) queues.delete(server)
      }
    },
    waiting: () => waiting,
  }
}

/**
 * Resolves when its turn has come. A request that was cancelled gives up its place, so a server that repeats one does not queue twice.
 */
function placeIn({ waiting }: Queue, signal: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      waiting.delete(start)
      reject(new ProtocolError('M_UNKNOWN', 'The request broke off.', { status: 400 }))
    }
    const start = (): void => {
      waiting.delete(start)
      signal.removeEventListener('abort', leave)
      resolve()
    }
    waiting.add(start)
    signal.addEventListener('abort', leave, { once: true })
  })
}
