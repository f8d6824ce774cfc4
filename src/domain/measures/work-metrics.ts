import type { DatabaseObserver } from '../../store/db/db.ts'
import { createTimings, Histogram, head } from './histogram.ts'

/** `initial` and `sliding_initial` are answers to clients that have no token yet. */
export type SyncKind = 'initial' | 'incremental' | 'sliding_initial' | 'sliding'

/** Times the making of sync answers. The time in which a sync waits for news does not count. */
export interface SyncMetrics {
  made(kind: SyncKind, seconds: number): void
}

/** What became of a transaction that we sent: the server took it, answered that it does not take it, or did not answer. */
export type SendOutcome = 'taken' | 'refused' | 'failed'

export interface FederationMetrics {
  /** A transaction to another server has ended. */
  sent(outcome: SendOutcome, seconds: number): void
  /** A transaction of another server has come. */
  received(pdus: number, edus: number): void
}

/** What became of a notification: the gateway took it, refused it, or did not answer. */
export type PushOutcome = 'taken' | 'refused' | 'unanswered'

export interface PushMetrics {
  asked(outcome: PushOutcome, seconds: number): void
}

/** Counts and times of work, each an increment or a bucket. */
export interface WorkMetrics {
  readonly sync: SyncMetrics
  readonly federation: FederationMetrics
  readonly push: PushMetrics
  readonly database: DatabaseObserver
  text(): string
}

export function createWorkMetrics(): WorkMetrics {
  const syncs = createTimings<SyncKind>(
    'hearth_sync_seconds',
    'Time to make the answer of a sync that had something to look at, without the time that it waited for news.',
    'kind',
    ['initial', 'incremental', 'sliding_initial', 'sliding'],
  )
  const sends = createTimings<SendOutcome>(
    'hearth_federation_send_seconds',
    'Time of one transaction to another server, by what became of it.',
    'outcome',
    ['taken', 'refused', 'failed'],
  )
  const pushes = createTimings<PushOutcome>(
    'hearth_push_seconds',
    'Time of one request to a push gateway, by what became of it.',
    'outcome',
    ['taken', 'refused', 'unanswered'],
  )
  const statements = createTimings<'read' | 'bulk'>(
    'hearth_database_read_seconds',
    'Time from a read to its result, its place in the line of its connection included.',
    'connection',
    ['read', 'bulk'],
  )
  const waits = new Histogram()
  const transactions = new Histogram()
  let pdus = 0
  let edus = 0
  return {
    sync: { made: syncs.observe },
    federation: {
      sent: sends.observe,
      received(morePdus, moreEdus) {
        pdus += morePdus
        edus += moreEdus
      },
    },
    push: { asked: pushes.observe },
    database: {
      read: statements.observe,
      waited: (seconds) => waits.observe(seconds),
      transacted: (seconds) => transactions.observe(seconds),
    },
    text: () =>
      [
        ...[syncs, sends, pushes, statements].map((timings) => timings.text()),
        ...histogram('hearth_database_wait_seconds', 'Time that a transaction waited for its connection.', waits),
        ...histogram('hearth_database_transaction_seconds', 'Time of a transaction on its connection.', transactions),
        ...counter('synapse_federation_server_received_pdus', 'Events that other servers have sent.', pdus),
        ...counter('synapse_federation_server_received_edus', 'EDUs that other servers have sent.', edus),
      ].join('\n'),
  }
}

const histogram = (name: string, help: string, of: Histogram): string[] => [
  ...head(name, help, 'histogram'),
  ...of.lines(name, ''),
]

const counter = (name: string, help: string, value: number): string[] => [
  ...head(name, help, 'counter'),
  `${name} ${value}`,
]
