import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ArrivalMetrics } from './arrival-metrics.ts'
import type { BoundMetrics } from './bound-metrics.ts'
import { createIdentityMetrics, type IdentityMetrics } from './identity/identity-metrics.ts'
import { type Levels, watchLevels } from './measures/level-metrics.ts'
import { createRequestTally, type RequestTimes } from './measures/request-tally.ts'
import { createWorkMetrics, type WorkMetrics } from './measures/work-metrics.ts'
import type { MediaMetrics } from './media/media-metrics.ts'

/** Counts and times for operators. Names that other homeservers use too mean the same here, so that existing dashboards work. */
export interface Metrics extends Pick<WorkMetrics, 'sync' | 'federation' | 'push' | 'database'> {
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
  /** The lines of the log by level, counted where they are written. */
  watchLog(lines: () => Readonly<Record<'warn' | 'error' | 'fatal', number>>): void
  /** The configuration was read again, and is in force, or has a mistake. */
  reloaded(isGood: boolean): void
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
  new Gauge({
    name: 'hearth_info',
    help: 'The release that runs here.',
    labelNames: ['version'],
    registers,
  }).set({ version: release.version }, 1)
  const requests = createRequestTally()
  const storage = storageMetrics(registers)
  const levels = watchLevels(registers)
  const work = createWorkMetrics()
  return {
    observeRequest: requests.add,
    observeCommit: storage.observeCommit,
    arrivals: arrivalMetrics(registers),
    bounds: boundMetrics(registers),
    media: mediaMetrics(registers),
    identity: createIdentityMetrics(registers),
    sync: work.sync,
    federation: work.federation,
    push: work.push,
    database: work.database,
    watch: levels.watch,
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    watchLog: (lines) => logMetric(registers, lines),
    reloaded: reloadMetric(registers),
    watchCertificate: (validUntil) => certificateMetric(registers, validUntil),
    text: async () => [await registry.metrics(), requests.text(), work.text(), ''].join('\n'),
    async glance() {
      const { waitingSyncs, waitingTransactions, roomMemory } = levels.current()
      const resident = await registry.getSingleMetric('process_resident_memory_bytes')?.get()
      return {
        events: storage.events(),
        requests: requests.times(),
        waitingSyncs: waitingSyncs(),
        waitingTransactions: waitingTransactions(),
        residentBytes: resident?.values[0]?.value,
        roomMemoryBytes: Object.values(roomMemory?.() ?? {}).reduce((sum, bytes) => sum + bytes, 0),
      }
    },
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
  const showBodies = watch('hearth_body_bytes', 'What the bodies of requests hold in memory.')
  let arrivingBodyBytes = () => 0
  return {
    refusedBody: (reason) => bodies.inc({ reason }),
    endedConnection: (reason) => connections.inc({ reason }),
    watchBodies(bytes, arriving) {
      arrivingBodyBytes = arriving
      showBodies(bytes)
    },
    arrivingBodyBytes: () => arrivingBodyBytes(),
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

function logMetric(registers: Registry[], lines: () => Readonly<Record<string, number>>): void {
  new Counter({
    name: 'hearth_log_lines_total',
    help: 'Warnings and errors, those included that the log leaves out because they repeat.',
    labelNames: ['level'],
    registers,
    collect() {
      this.reset()
      for (const [level, count] of Object.entries(lines())) this.inc({ level }, count)
    },
  })
}

function reloadMetric(registers: Registry[]): Metrics['reloaded'] {
  const failed = new Gauge({
    name: 'hearth_reload_failed',
    help: '1 if the configuration was told to be read again and has a mistake, so that the former one stays in force.',
    registers,
  })
  return (isGood) => failed.set(isGood ? 0 : 1)
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
