import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { createRequestTally } from './request-tally.ts'

/** Counts and times for operators. Names that other homeservers use too mean the same here, so that existing dashboards work. */
export interface Metrics {
  /** One request answered. `route` is the operation as declared, never a path with ids in it. */
  observeRequest(method: string, route: string, status: number, seconds: number): void
  /** One database transaction of some length; `purpose` is one of a few fixed words. */
  observeTransaction(purpose: string, seconds: number): void
  /** One commit of events. */
  observeCommit(events: number, seconds: number): void
  /** A value that is read only when somebody asks for the metrics. */
  gauge(name: string, help: string, read: () => number): void
  /** Everything in the text format of Prometheus. */
  text(): Promise<string>
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

export function createMetrics(release: { readonly version: string; readonly node: string }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'synapse_build_info',
    help: 'What runs here: the homeserver, its release and the runtime.',
    labelNames: ['server', 'version', 'nodeversion'],
    registers,
  }).set({ server: 'hearth', version: release.version, nodeversion: release.node }, 1)
  const requests = createRequestTally()
  return {
    observeRequest: requests.add,
    ...storageMetrics(registers),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read())
        },
      })
    },
    text: async () => `${await registry.metrics()}\n${requests.text()}`,
  }
}

function storageMetrics(registers: Registry[]): Pick<Metrics, 'observeTransaction' | 'observeCommit'> {
  const transactions = new Histogram({
    name: 'synapse_storage_transaction_time',
    help: 'Time of database transactions in seconds, by purpose.',
    labelNames: ['desc'],
    buckets: SECONDS,
    registers,
  })
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
  return {
    observeTransaction: (desc, seconds) => transactions.observe({ desc }, seconds),
    observeCommit(events, seconds) {
      persisted.inc(events)
      batch.observe(events)
      commit.observe(seconds)
    },
  }
}
