import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  databaseTime,
  endSessions,
  findNode,
  type NodeFacts,
  type NodeRow,
  readNode,
  restoreFence,
  takeNode,
} from '../../store/cluster/nodes.ts'
import type { Database } from '../../store/db/db.ts'
import { claimWriter, LOCK_PATIENCE_MS, WRITER, WriterPresent } from '../../store/db/writer-lock.ts'
import type { Clock } from '../clock.ts'
import { NODE_LEASE_MARGIN_MS, NODE_LEASE_MS, NODE_LOOK_MS, SESSIONS_END_MS } from '../limits/cluster.ts'
import { onceAMinute } from '../once-a-minute.ts'
import { isServing, mustAgreeOnTime, mustFit, NodeRefused } from './node-fit.ts'
import { keepNode, type NodeLease } from './node-lease.ts'
import { watchSettings } from './node-settings.ts'

export interface JoinParts {
  readonly db: Pick<Database, 'query' | 'dedicated'>
  readonly own: NodeFacts
  readonly clock: Clock
  readonly log: Logger
  /** Without it, a process that finds the place taken waits for one lease at most. */
  readonly standBy?: StandBy | undefined
}

export interface StandBy {
  /**
   * Called when this process begins to stand by, when another node serves than before, and when its settings become others.
   *
   * @param address of the one that serves, if there is one
   * @param isAlike whether that one is known to have the same settings, so that this one would answer in the same way
   */
  serving(address: string | undefined, isAlike: boolean): void | Promise<void>
  /** Ends standing by. */
  readonly signal: AbortSignal
}

/** This process was stopped while it stood by. */
export class StandByEnded extends Error {}

/**
 * Takes the place of the node that writes. Alone, that is at once or not at all; in a cluster, this process stands by until the place is free.
 *
 * @throws NodeRefused if this process does not belong here; WriterPresent if another one has the database
 */
export function joinNodes(parts: JoinParts): Promise<NodeLease> {
  return parts.own.cluster === undefined ? serveAlone(parts) : joinCluster(parts)
}

/**
 * Refuses a process that does not belong to the cluster before it changes anything: before it migrates the database, above all.
 *
 * @throws NodeRefused
 */
export async function meetNodes(db: Pick<Database, 'query'>, own: NodeFacts): Promise<void> {
  const found = await findNode(db, WRITER)
  if (isServing(found)) mustFit(own, found)
}

/** The lock of a session guards the place, so it is free at the moment when the process ends. */
async function serveAlone({ db, own }: JoinParts): Promise<NodeLease> {
  const writer = WRITER
  let fence: number | undefined
  const writing = db.dedicated(async (client) => {
    await claimWriter(client, writer)
    if (fence !== undefined) await restoreFence(client, { writer, fence })
  })
  const found = await findNode(db, writer)
  if (isServing(found)) mustFit(own, found)
  fence = await takeNode(writing, writer, own, 0)
  if (fence === undefined) throw new NodeRefused('another node has just begun to serve from this database')
  return { writer, fence, writing, isHeld: () => true, lost: new Promise(() => {}), leave: async () => {} }
}

/** Another node serves, or none does just now. */
interface Serving {
  /** Where it listens for others, if it does. */
  readonly address: string | undefined
  readonly isAlike: boolean
}

const NOBODY: Serving = { address: undefined, isAlike: false }

/** What a process has while it tries to take the place. */
interface Trying extends JoinParts {
  /** Whether the node that serves has the same settings. Says in the log which ones differ. */
  readonly isLike: (other: NodeRow) => boolean
  /** Called when nobody has the place any more, before this process tries to take it. */
  readonly vacant: () => Promise<void>
  /** Called when sessions of the node before do not end. */
  readonly outlived: () => void
}

async function joinCluster(parts: JoinParts): Promise<NodeLease> {
  const { db, clock, log, standBy } = parts
  mustAgreeOnTime(clock.now(), await databaseTime(db))
  const begun = performance.now()
  let serving: Serving | undefined
  async function standByFor(next: Serving): Promise<void> {
    if (serving?.address === next.address && serving?.isAlike === next.isAlike) return
    serving = next
    await standBy?.serving(next.address, next.isAlike)
  }
  const trying: Trying = {
    ...parts,
    vacant: async () => serving && standByFor(NOBODY),
    isLike: watchSettings(parts),
    outlived: onceAMinute((times) =>
      log.warn(
        { times },
        'the database still has sessions of the node that served before, and does not end them (see pg_stat_activity); this one waits for that',
      ),
    ),
  }
  for (;;) {
    const outcome = await attempt(trying, serving)
    if ('lease' in outcome) return outcome.lease
    if (serving === undefined) log.info({ serving: outcome.address }, 'another node serves; this one stands by')
    await standByFor(outcome)
    if (standBy === undefined && performance.now() - begun > NODE_LEASE_MS + NODE_LEASE_MARGIN_MS)
      throw new NodeRefused('a node of this cluster serves, and cannot be asked: stop it, or try again where it runs')
    await pause(NODE_LOOK_MS, undefined, { signal: standBy?.signal }).catch(() => {
      throw new StandByEnded('this node was stopped while it stood by')
    })
  }
}

/**
 * Takes the place if it is free, or says who serves. A database that is away ends nobody's standing by, only a start.
 *
 * @param last who served when it was looked last: without the database that node is believed to go on, and what it answers is not given up
 */
async function attempt(parts: Trying, last: Serving | undefined): Promise<{ readonly lease: NodeLease } | Serving> {
  try {
    // It looks often, so each further look is one query: the database counts them, and backups read these counts.
    const found = await (last === undefined ? findNode : readNode)(parts.db, WRITER)
    if (isServing(found)) {
      mustFit(parts.own, found)
      return { address: found.address || undefined, isAlike: parts.isLike(found) }
    }
    await parts.vacant()
    const lease = await take(parts, found)
    return lease === undefined ? NOBODY : { lease }
  } catch (error) {
    if (last === undefined || (error as { status?: number }).status !== 503) throw error
    return last
  }
}

/** Takes the place if nobody is quicker. @param before who had it last */
async function take(parts: Trying, before: NodeRow | undefined): Promise<NodeLease | undefined> {
  const { db, own } = parts
  const wasOfCluster = before !== undefined && before.cluster !== null
  if (wasOfCluster && !(await endSessions(db, before.holder, SESSIONS_END_MS))) {
    parts.outlived()
    return undefined
  }
  // Who waits long for a lock that another node has got by now does not see that this one serves.
  let patienceMs: number | undefined = NODE_LOOK_MS
  const writing = db.dedicated((client) => claimWriter(client, WRITER, patienceMs))
  let lease: NodeLease | undefined
  try {
    for (const begun = performance.now(); ; ) {
      const askedAt = performance.now()
      try {
        const fence = await takeNode(writing, WRITER, own, NODE_LEASE_MS)
        patienceMs = undefined
        lease = fence === undefined ? undefined : keepNode(parts, { writer: WRITER, fence, writing, askedAt })
        return lease
      } catch (error) {
        if (!(error instanceof WriterPresent)) throw error
        // On an empty database, the first of several nodes that begin at once has written who it is by now.
        if (wasOfCluster || isServing(await findNode(db, WRITER))) return undefined
        // Else a process alone has the lock, which may be ending.
        if (performance.now() - begun > LOCK_PATIENCE_MS) throw new NodeRefused(ALONE_THERE)
      }
    }
  } finally {
    // Its lock must not outlive the attempt.
    if (lease === undefined) await writing.close()
  }
}

const ALONE_THERE =
  'a Hearth without cluster.secret uses this database: give it the same cluster.secret and start it again, or give this one a database of its own'
