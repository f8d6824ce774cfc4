import type { Logger } from 'pino'
import { type Fence, leaveNode, type NodeFacts, renewNode } from '../../store/cluster/nodes.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import { NODE_LEASE_MARGIN_MS, NODE_LEASE_MS, NODE_RENEWAL_MS, NODE_RENEWAL_RETRY_MS } from '../limits/cluster.ts'
import { onceAMinute } from '../once-a-minute.ts'

/** The place of this process among the nodes. While it has it, no other process changes what this one has in memory. */
export interface NodeLease extends Fence {
  /** The connection that writes events. */
  readonly writing: Reader
  /** Whether this process may still write, by its own clock. False also while the database has not answered for long. */
  isHeld(): boolean
  /** Resolves if another process took the place. Then this one must end: what it has in memory is no longer true. */
  readonly lost: Promise<void>
  /** Gives the place back. Nothing may be written afterwards. */
  leave(): Promise<void>
}

/** How long a node counts on its place after it asked for it. */
const COUNTED_ON_MS = NODE_LEASE_MS - NODE_LEASE_MARGIN_MS

export interface Taken extends Fence {
  readonly writing: Reader
  /** When the place was asked for, by the clock of `performance.now()`. */
  readonly askedAt: number
}

/** Keeps a place by saying again and again that this process runs: on a connection of its own, so that no other query delays it. */
export function keepNode(
  parts: { readonly db: Pick<Database, 'dedicated'>; readonly own: NodeFacts; readonly log: Logger },
  { writer, fence, writing, askedAt }: Taken,
): NodeLease {
  const { db, own, log } = parts
  const connection = db.dedicated()
  let heldUntil = askedAt + COUNTED_ON_MS
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  let renewing: Promise<void> = Promise.resolve()
  let lose: () => void = () => {}
  const lost = new Promise<void>((resolve) => {
    lose = resolve
  })
  const unanswered = onceAMinute((times) =>
    log.warn({ times }, 'the database did not answer when this node said that it runs'),
  )

  function end(): void {
    isOver = true
    heldUntil = Number.NEGATIVE_INFINITY
    clearTimeout(timer)
  }

  function renewIn(ms: number): void {
    if (isOver) return
    timer = setTimeout(() => {
      renewing = renew()
    }, ms).unref()
  }

  async function renew(): Promise<void> {
    const begun = performance.now()
    try {
      const isOurs = await renewNode(connection, { writer, fence }, own, NODE_LEASE_MS)
      if (isOver) return
      if (isOurs) {
        heldUntil = begun + COUNTED_ON_MS
        renewIn(NODE_RENEWAL_MS)
      } else {
        end()
        lose()
      }
    } catch {
      if (!isOver) unanswered()
      renewIn(NODE_RENEWAL_RETRY_MS)
    }
  }

  renewIn(NODE_RENEWAL_MS)
  return {
    writer,
    fence,
    writing,
    lost,
    isHeld: () => performance.now() < heldUntil,
    async leave() {
      end()
      await renewing
      await leaveNode(connection, { writer, fence })
    },
  }
}
