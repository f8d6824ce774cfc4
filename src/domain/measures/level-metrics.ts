import { Counter, Gauge, type Registry } from 'prom-client'
import type { CacheUses } from '../../core/byte-budget.ts'
import type { PoolUse } from '../../store/db/db.ts'
import type { ReplicaState } from '../../store/db/replicas.ts'

/** Values that go up and down. */
export interface Levels {
  /** Syncs that wait for news. */
  waitingSyncs(): number
  /** Bytes of sync answers that clients have not read yet. */
  answerBytes?(): number
  /** Waiting syncs that were ended, since the start. */
  endedSyncs?(): { readonly displaced: number; readonly withSession: number }
  /** Transactions that wait for a connection. */
  waitingTransactions(): number
  /** Requests of other servers that wait for their turn. */
  waitingPeerRequests(): number
  /** Requests to other servers on behalf of users that are running. Only where there are users. */
  serversAsked?(): number
  /** Logins that were refused unchecked since the start, because too many passwords were wrong. Only where there are accounts. */
  refusedLogins?(): number
  /** Bytes that are cached about rooms, by kind. */
  roomMemory?(): Readonly<Record<'events' | 'rooms' | 'others', number>>
  /** Users who were active in the last thirty days, as last counted. Only where there are accounts. */
  monthlyActiveUsers?(): number
  /** When the last backup ended, in ms; undefined if there was none. */
  lastBackup?(): Promise<number | undefined>
  readonly database?: () => PoolUse
  readonly replicas?: (() => readonly ReplicaState[]) | undefined
  readonly caches?: () => Readonly<Record<'events' | 'rooms' | 'others' | 'sessions', Readonly<CacheUses>>>
  readonly sending?: () => SendingLevels
  /** When the first event was made that some server has not been sent, in ms; undefined if all have been. */
  readonly oldestUnsent?: () => Promise<number | undefined>
  readonly push?: () => PushLevels
  /** Events that are not in the index of searches yet. */
  readonly unindexed?: () => number
  /** How many deliveries in a row each application service has failed to take, by its id. */
  appserviceFailures?(): ReadonlyMap<string, number>
}

/** The queues of events for other servers. */
export interface SendingLevels {
  readonly destinations: Readonly<Record<string, number>>
  readonly pdus: number
  readonly edus: number
}

export interface PushLevels {
  /** Pushers that have something to send, and gateways that do not answer. */
  readonly gateways: { readonly waiting: number; readonly failing: number }
  /** Notifications in memory. */
  readonly notices: number
  /** Positions of the stream that no pusher has been asked about yet. */
  readonly unevaluated: number
}

/** The gauges, which are read whenever somebody fetches the metrics. */
export interface WatchedLevels {
  /** Sets where they are read. */
  watch(levels: Levels): void
  current(): Levels
}

/** Registers the gauges. */
export function watchLevels(registers: Registry[]): WatchedLevels {
  let levels: Levels = { waitingSyncs: () => 0, waitingTransactions: () => 0, waitingPeerRequests: () => 0 }
  const make = gauges(registers, () => levels)
  generalLevels(make)
  queueLevels(make)
  cacheLevels(make)
  make.counts('hearth_ended_syncs_total', ENDED_SYNCS, 'reason', ({ endedSyncs }) => {
    const { displaced = 0, withSession = 0 } = endedSyncs?.() ?? {}
    return { displaced, session: withSession }
  })
  new Gauge({
    name: 'hearth_appservice_failures',
    help: 'How often in a row an application service has not taken what it is sent; 0 while it does.',
    labelNames: ['appservice'],
    registers,
    collect() {
      this.reset()
      for (const [appservice, failures] of levels.appserviceFailures?.() ?? []) this.set({ appservice }, failures)
    },
  })
  return {
    watch(next) {
      levels = next
    },
    current: () => levels,
  }
}

const ENDED_SYNCS =
  'Syncs that ended while they waited: the device or the user held too many (displaced), or the session may have ended (session).'

/** Makes metrics that are read when somebody fetches them. */
interface Gauges {
  one(name: string, help: string, read: (levels: Levels) => number | Promise<number>): void
  /** One value for each kind. */
  each(name: string, help: string, label: string, read: (levels: Levels) => Readonly<Record<string, number>>): void
  /** The same, of values that only grow. */
  counts(name: string, help: string, label: string, read: (levels: Levels) => Readonly<Record<string, number>>): void
}

function gauges(registers: Registry[], levels: () => Levels): Gauges {
  return {
    one(name, help, read) {
      new Gauge({
        ...{ name, help, registers },
        async collect() {
          this.set(await read(levels()))
        },
      })
    },
    each(name, help, label, read) {
      new Gauge({
        ...{ name, help, registers, labelNames: [label] },
        collect() {
          for (const [kind, value] of Object.entries(read(levels()))) this.set({ [label]: kind }, value)
        },
      })
    },
    counts(name, help, label, read) {
      new Counter({
        ...{ name, help, registers, labelNames: [label] },
        collect() {
          this.reset()
          for (const [kind, value] of Object.entries(read(levels()))) this.inc({ [label]: kind }, value)
        },
      })
    },
  }
}

function generalLevels({ one }: Gauges): void {
  one('hearth_waiting_syncs', 'Syncs that wait for news.', (levels) => levels.waitingSyncs())
  one(
    'hearth_answer_bytes',
    'Bytes of answers to syncs that are in memory because clients have not taken them yet.',
    (levels) => levels.answerBytes?.() ?? 0,
  )
  one(
    'hearth_refused_logins',
    'Passwords that were not looked at since the start, because too many for the account were wrong.',
    (levels) => levels.refusedLogins?.() ?? 0,
  )
  one(
    'synapse_admin_mau_current',
    'People who used this server within thirty days, counted every few minutes.',
    (levels) => levels.monthlyActiveUsers?.() ?? Number.NaN,
  )
  one(
    'hearth_last_backup_timestamp_seconds',
    'When the last whole backup was made, in seconds since 1970; NaN if there was none.',
    async (levels) => {
      const at = await levels.lastBackup?.().catch(() => undefined)
      return at === undefined ? Number.NaN : Math.floor(at / 1000)
    },
  )
}

function queueLevels({ one, each, counts }: Gauges): void {
  const pending = 'synapse_federation_transaction_queue_pending'
  one('hearth_waiting_peer_requests', 'Requests of other servers that wait for their turn.', (levels) =>
    levels.waitingPeerRequests(),
  )
  one(
    'hearth_servers_asked',
    'Other servers that are being asked about keys on behalf of users.',
    (levels) => levels.serversAsked?.() ?? 0,
  )
  each(
    'hearth_federation_destinations',
    'Other servers that were sent something lately, by what their queue does; failing ones do not answer, gone ones have not for long.',
    'state',
    (levels) => levels.sending?.().destinations ?? {},
  )
  one(
    `${pending}_pdus`,
    'Events in memory that wait to be sent to other servers.',
    (levels) => levels.sending?.().pdus ?? 0,
  )
  one(
    `${pending}_edus`,
    'EDUs in memory that wait to be sent to other servers.',
    (levels) => levels.sending?.().edus ?? 0,
  )
  one(
    'hearth_federation_oldest_unsent_timestamp_seconds',
    'When the oldest event was made that some server has not been sent, in seconds since 1970; NaN if there is none.',
    async (levels) => {
      const at = await levels.oldestUnsent?.().catch(() => undefined)
      return at === undefined ? Number.NaN : at / 1000
    },
  )
  one('hearth_push_waiting', 'Pushers that have something to send.', (levels) => levels.push?.().gateways.waiting ?? 0)
  one('hearth_push_notices', 'Notifications in memory.', (levels) => levels.push?.().notices ?? 0)
  one(
    'hearth_push_failing_gateways',
    'Push gateways that do not answer.',
    (levels) => levels.push?.().gateways.failing ?? 0,
  )
  one(
    'hearth_push_unevaluated',
    'Positions of the event stream that were not looked at for notifications yet.',
    (levels) => levels.push?.().unevaluated ?? 0,
  )
  one('hearth_search_unindexed', 'Events not looked at for searches yet.', (levels) => levels.unindexed?.() ?? 0)
  one('hearth_waiting_transactions', 'Transactions that wait for a database connection.', (levels) =>
    levels.waitingTransactions(),
  )
  each('hearth_database_connections', 'Connections for transactions.', 'state', ({ database }) => {
    const { open = 0, idle = 0 } = database?.() ?? {}
    return { busy: open - idle, idle }
  })
  const ofReplicas = (levels: Levels, read: (state: ReplicaState) => number) =>
    Object.fromEntries((levels.replicas?.() ?? []).map((state) => [state.name, read(state)]))
  each(
    'hearth_replica_used',
    'Whether a replica answers reads; 0 while it is away, or too far behind.',
    'replica',
    (levels) => ofReplicas(levels, ({ isUsed }) => (isUsed ? 1 : 0)),
  )
  each('hearth_replica_lag_seconds', 'How far a replica is behind, to half a second.', 'replica', (levels) =>
    ofReplicas(levels, ({ lagSeconds }) => lagSeconds),
  )
  counts('hearth_replica_reads_total', 'Reads that a replica answered.', 'replica', (levels) =>
    ofReplicas(levels, ({ reads }) => reads),
  )
}

function cacheLevels({ each, counts }: Gauges): void {
  each(
    'hearth_room_memory_bytes',
    'Memory that is cached about rooms, by kind. All kinds share one budget of 64 MiB, and what was not used for longest goes first.',
    'kind',
    (levels) => ({ ...levels.roomMemory?.() }),
  )
  const pick = (levels: Levels, what: keyof CacheUses) =>
    Object.fromEntries(Object.entries(levels.caches?.() ?? {}).map(([cache, uses]) => [cache, uses[what]]))
  counts('hearth_cache_hits_total', 'How often something was looked for in a cache and was there.', 'cache', (levels) =>
    pick(levels, 'hits'),
  )
  counts('hearth_cache_misses_total', 'How often it was not there.', 'cache', (levels) => pick(levels, 'misses'))
}
