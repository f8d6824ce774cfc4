import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ArrivalMetrics } from './arrival-metrics.ts'
import type { BoundMetrics } from './bound-metrics.ts'
import { createIdentityMetrics, type IdentityMetrics } from './identity/identity-metrics.ts'
import type { MediaMetrics } from './media/media-metrics.ts'
import { createRequestTally, type RequestTimes } from './request-tally.ts'

/** Counts and times for operators. Names that other homeservers use too mean the same here, so that existing dashboards work. */
export interface Metrics {
  /** One request answered. `route` is the operation as declared, never a path with ids in it. */
  observeRequest(method: string, route: string, status: number, seconds: number): void
  /** One commit of events. */
  observeCommit(events: number, seconds: number): void
  readonly arrivals: ArrivalMetrics
  readonly bounds: BoundMetrics
  readonly media: MediaMetrics
  readonly identity: IdentityMetrics
  /** Registers the gauges. They are read whenever somebody fetches the metrics. */
  watch(levels: Levels): void
  /** Adds the metrics of the Node.js process. Call it once in a process: its observers stay until the end. */
  watchProcess(): void
  /** The end of the certificate that HTTPS is served with, in milliseconds, read whenever somebody asks. */
  watchCertificate(validUntil: () => number): void
  /** Everything in the text format of Prometheus. */
  text(): Promise<string>
  /** A few of them, for people who look at the server now. */
  glance(): Promise<Glance>
}

export interface Glance {
  /** Since the start, as all counts here. */
  readonly events: number
  readonly requests: RequestTimes
  readonly waitingSyncs: number
  readonly waitingTransactions: number
  /** Bytes of this process in the machine's memory; undefined where nobody watches the process. */
  readonly residentBytes: number | undefined
  readonly roomMemoryBytes: number
}

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
  /** How many deliveries in a row each application service has failed to take, by its id. */
  appserviceFailures?(): ReadonlyMap<string, number>
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

export function createMetrics(release: { readonly version: string; readonly node: string }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  new Gauge({
    name: 'synapse_build_info',
    help: 'What runs here: the homeserver, its release and the runtime.',
    labelNames: ['server', 'version', 'nodeversion'],
    registers,
  }).set({ server: 'hearth', version: release.version, nodeversion: release.node }, 1)
  const requests = createRequestTally()
  const storage = storageMetrics(registers)
  const gauges = levelMetrics(registers)
  return {
    observeRequest: requests.add,
    observeCommit: storage.observeCommit,
    arrivals: arrivalMetrics(registers),
    bounds: boundMetrics(registers),
    media: mediaMetrics(registers),
    identity: createIdentityMetrics(registers),
    watch: gauges.watch,
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    watchCertificate: (validUntil) => certificateMetric(registers, validUntil),
    text: async () => `${await registry.metrics()}\n${requests.text()}`,
    async glance() {
      const levels = gauges.current()
      const resident = await registry.getSingleMetric('process_resident_memory_bytes')?.get()
      return {
        events: storage.events(),
        requests: requests.times(),
        waitingSyncs: levels.waitingSyncs(),
        waitingTransactions: levels.waitingTransactions(),
        residentBytes: resident?.values[0]?.value,
        roomMemoryBytes: Object.values(levels.roomMemory?.() ?? {}).reduce((sum, bytes) => sum + bytes, 0),
      }
    },
  }
}

function levelMetrics(registers: Registry[]): Pick<Metrics, 'watch'> & { current(): Levels } {
  let levels: Levels = {
    waitingSyncs: () => 0,
    waitingTransactions: () => 0,
    waitingPeerRequests: () => 0,
  }
  const level = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  level('hearth_waiting_syncs', 'Syncs that wait for news.', () => levels.waitingSyncs())
  level(
    'hearth_answer_bytes',
    'Bytes of answers to syncs that are in memory because clients have not taken them yet.',
    () => levels.answerBytes?.() ?? 0,
  )
  level('hearth_waiting_transactions', 'Transactions that wait for a database connection.', () =>
    levels.waitingTransactions(),
  )
  level('hearth_waiting_peer_requests', 'Requests of other servers that wait for their turn.', () =>
    levels.waitingPeerRequests(),
  )
  level(
    'hearth_servers_asked',
    'Other servers that are being asked about keys on behalf of users.',
    () => levels.serversAsked?.() ?? 0,
  )
  level(
    'hearth_refused_logins',
    'Passwords that were not looked at since the start, because too many for the account were wrong.',
    () => levels.refusedLogins?.() ?? 0,
  )
  level(
    'synapse_admin_mau_current',
    'People who used this server within thirty days, counted every few minutes.',
    () => levels.monthlyActiveUsers?.() ?? Number.NaN,
  )
  new Gauge({
    name: 'hearth_last_backup_timestamp_seconds',
    help: 'When the last whole backup was made, in seconds since 1970; NaN if there was none.',
    registers,
    async collect() {
      const at = await levels.lastBackup?.().catch(() => undefined)
      this.set(at === undefined ? Number.NaN : Math.floor(at / 1000))
    },
  })
  new Counter({
    name: 'hearth_ended_syncs_total',
    help: 'Syncs that ended while they waited: the device or the user held too many (displaced), or the session may have ended (session).',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      const { displaced = 0, withSession = 0 } = levels.endedSyncs?.() ?? {}
      this.inc({ reason: 'displaced' }, displaced)
      this.inc({ reason: 'session' }, withSession)
    },
  })
  new Gauge({
    name: 'hearth_room_memory_bytes',
    help: 'Memory that is cached about rooms, by kind. All kinds share one budget of 64 MiB, and what was not used for longest goes first.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, bytes] of Object.entries(levels.roomMemory?.() ?? {})) this.set({ kind }, bytes)
    },
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

function arrivalMetrics(registers: Registry[]): ArrivalMetrics {
  const counter = (name: string, help: string) => new Counter({ name, help, labelNames: ['reason'], registers })
  const bodies = counter('hearth_refused_bodies_total', 'Bodies of requests that were not taken.')
  const connections = counter('hearth_ended_connections_total', 'Connections that this server ended, and why.')
  const watch = (name: string, help: string) => (read: () => number) => {
    registers[0]!.removeSingleMetric(name)
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }
  return {
    refusedBody: (reason) => bodies.inc({ reason }),
    endedConnection: (reason) => connections.inc({ reason }),
    watchBodies: watch('hearth_body_bytes', 'What the bodies of requests hold in memory.'),
    watchConnections: watch('hearth_connections', 'Connections of clients and other servers.'),
  }
}

function boundMetrics(registers: Registry[]): BoundMetrics {
  const reached = new Counter({
    name: 'hearth_bounds_reached_total',
    help: 'How often a bound has refused something or cut it short: what users, other servers and unknown callers may cost everybody.',
    labelNames: ['bound'],
    registers,
  })
  return { reached: (bound, times = 1) => reached.inc({ bound }, times) }
}

function certificateMetric(registers: Registry[], validUntil: () => number): void {
  new Gauge({
    name: 'hearth_certificate_not_after_timestamp_seconds',
    help: 'When the certificate runs out that HTTPS is served with, where Hearth serves it.',
    registers,
    collect() {
      this.set(validUntil() / 1000)
    },
  })
}

function storageMetrics(registers: Registry[]): Pick<Metrics, 'observeCommit'> & { events(): number } {
  const persisted = new Counter({
    name: 'synapse_storage_events_persisted_events',
    help: 'Events committed.',
    registers,
  })
  const batch = new Histogram({
    name: 'hearth_events_per_commit',
    help: 'How many events one commit carried.',
    buckets: BATCH,
    registers,
  })
  const commit = new Histogram({
    name: 'hearth_event_commit_seconds',
    help: 'Time of one commit of events.',
    buckets: SECONDS,
    registers,
  })
  let committed = 0
  return {
    events: () => committed,
    observeCommit(events, seconds) {
      committed += events
      persisted.inc(events)
      batch.observe(events)
      commit.observe(seconds)
    },
  }
}

function mediaMetrics(registers: Registry[]): MediaMetrics {
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const uploads = counter('hearth_media_uploads_total', 'Files that users have uploaded.')
  const uploaded = counter('hearth_media_uploaded_bytes_total', 'What they came to.')
  const fetches = counter('hearth_media_fetches_total', 'Files of other servers that were asked for.', ['outcome'])
  const fetched = counter('hearth_media_fetched_bytes_total', 'What came of it.')
  const thumbnails = counter('hearth_media_thumbnails_total', 'Thumbnails that were to be made.', ['outcome'])
  return {
    uploaded(bytes) {
      uploads.inc()
      uploaded.inc(bytes)
    },
    fetched(bytes) {
      fetches.inc({ outcome: bytes === undefined ? 'failed' : 'fetched' })
      fetched.inc(bytes ?? 0)
    },
    thumbnailed: (outcome) => thumbnails.inc({ outcome }),
  }
}
