import { Counter, Gauge, type Registry } from 'prom-client'

/** Counts the identity service's work. No count says anything about a person. */
export interface IdentityMetrics {
  /** One call. `source`: memory or the database, or a lookup without hashes. */
  lookup(source: 'memory' | 'database' | 'plain', asked: number, found: number): void
  /** A validation session was begun, or an address was validated. */
  session(medium: 'email' | 'msisdn', step: 'requested' | 'validated'): void
  /** A mail or a text message, including the homeserver's if it is in the same process. */
  message(medium: 'email' | 'msisdn', outcome: 'sent' | 'failed' | 'rejected'): void
  binding(act: 'bind' | 'unbind'): void
  /** `failed` deliveries are tried again; `given_up` ones are not. */
  invitations(step: 'stored' | 'delivered' | 'failed' | 'given_up', count: number): void
  /** Registers the gauges. They are read whenever somebody fetches the metrics. */
  watch(levels: IdentityLevels): void
}

export interface IdentityLevels {
  /** How many bindings are in memory. */
  remembered(): number
  rotation(): Promise<PepperLevels>
}

export interface PepperLevels {
  /** When the current pepper came into use, in milliseconds. */
  readonly since: number
  /** The share of bindings that have a hash with the next pepper; 1 without a rotation. */
  readonly progress: number
}

/** The metrics do not wait longer than this for an unreachable database. */
const PATIENCE_MS = 1_000

export function createIdentityMetrics(registers: Registry[]): IdentityMetrics {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
    new Counter({ name: `hearth_identity_${name}_total`, help, labelNames, registers })
  const lookups = counter('lookups', 'Calls that looked addresses up, by who answered.', ['source'])
  const asked = counter('addresses_looked_up', 'Addresses that were looked up.', [])
  const found = counter('addresses_found', 'Of those, addresses that were bound to somebody.', [])
  const sessions = counter('sessions', 'Sessions to validate addresses, begun and successful.', ['medium', 'step'])
  const messages = counter('messages', 'Mails and text messages.', ['medium', 'outcome'])
  const bindings = counter('bindings', 'Addresses bound and unbound.', ['act'])
  const invitations = counter('invitations', 'Invitations to addresses, kept and handed over.', ['step'])
  return {
    lookup(source, askedFor, foundOf) {
      lookups.inc({ source })
      asked.inc(askedFor)
      found.inc(foundOf)
    },
    session: (medium, step) => sessions.inc({ medium, step }),
    message: (medium, outcome) => messages.inc({ medium, outcome }),
    binding: (act) => bindings.inc({ act }),
    invitations: (step, count) => invitations.inc({ step }, count),
    watch: levelMetrics(registers),
  }
}

function levelMetrics(registers: Registry[]): IdentityMetrics['watch'] {
  let levels: IdentityLevels | undefined
  const level = (name: string, help: string, read: (levels: IdentityLevels) => number | Promise<number>) =>
    new Gauge({
      name: `hearth_identity_${name}`,
      help,
      registers,
      async collect() {
        this.set(levels === undefined ? Number.NaN : await read(levels))
      },
    })
  level('bindings_in_memory', 'Bindings that lookups are answered from memory by.', ({ remembered }) => remembered())
  level('pepper_timestamp_seconds', 'When the pepper of lookups came into use.', async (now) =>
    readRotation(now, ({ since }) => since / 1_000),
  )
  level('pepper_rotation_ratio', 'How much is hashed with the next pepper; 1 without a rotation.', async (now) =>
    readRotation(now, ({ progress }) => progress),
  )
  return (next) => {
    levels = next
  }
}

async function readRotation(levels: IdentityLevels, pick: (pepper: PepperLevels) => number): Promise<number> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS)
  })
  const pepper = await Promise.race([levels.rotation().catch(() => undefined), late])
  clearTimeout(timer)
  return pepper ? pick(pepper) : Number.NaN
}
