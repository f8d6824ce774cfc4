import type { Logger } from 'pino'
import type { ServerName } from '../../core/ids.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import {
  type DestinationRow,
  keepPartings,
  type Parting,
  removePartings,
  saveSending,
} from '../../store/federation/federation-destinations.ts'
import { markForwards } from '../../store/federation/federation-forwards.ts'
import type { Clock } from '../clock.ts'
import type { Destination } from './destination.ts'

const SAVE_EVERY_MS = 2_000

interface News {
  readonly at: number
  readonly behind: readonly DestinationRow[]
  readonly caughtUp: readonly ServerName[]
  readonly partings: readonly Parting[]
  readonly marks: readonly number[]
}

/** Stores how far events were sent. It writes what changed, every two seconds. */
export class SendingRecord {
  readonly #deps: { readonly db: Database; readonly clock: Clock; readonly log: Logger; position(): number }
  /** The stored rows of servers that lag behind. */
  readonly #saved = new Map<ServerName, DestinationRow>()
  /** Servers that still need the event by which their last user left a room. */
  readonly #parted = new Set<ServerName>()
  readonly #changed = new Set<Destination>()
  /** New events of that kind, to be stored. */
  #partings: { readonly destination: Destination; readonly eventNid: number }[] = []
  /** Forwarded events that are in the queues of all their destinations. */
  #handedOn: number[] = []
  #position = -1
  #timer: NodeJS.Timeout | undefined
  #saving: Promise<void> | undefined

  /** @param deps.position up to which all destinations have their events queued */
  constructor(deps: { readonly db: Database; readonly clock: Clock; readonly log: Logger; position(): number }) {
    this.#deps = deps
  }

  has(server: ServerName): boolean {
    return this.#saved.has(server)
  }

  /** The stored rows at the start of the process. */
  begin(rows: readonly DestinationRow[], parted: readonly ServerName[]): void {
    for (const row of rows) this.#saved.set(row.server, row)
    for (const server of parted) this.#parted.add(server)
  }

  readonly changed = (destination: Destination): void => {
    this.#changed.add(destination)
    this.soon()
  }

  /** An event kicks or bans the last user of a server. */
  part(destination: Destination, eventNid: number): void {
    this.#partings.push({ destination, eventNid })
  }

  handedOn(eventNid: number): void {
    this.#handedOn.push(eventNid)
    this.soon()
  }

  soon(): void {
    if (this.#saving === undefined) this.#timer ??= setTimeout(() => this.#save(), SAVE_EVERY_MS).unref()
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#saving
    clearTimeout(this.#timer)
  }

  #save(): void {
    this.#timer = undefined
    this.#saving = this.saveNow()
      .catch((err) =>
        this.#deps.log.warn({ err }, 'how far events were sent could not be noted; it will be tried again'),
      )
      .finally(() => {
        this.#saving = undefined
        if (!this.#isWhole) this.soon()
      })
  }

  get #isWhole(): boolean {
    const waiting = this.#changed.size + this.#partings.length + this.#handedOn.length
    return waiting === 0 && this.#deps.position() === this.#position
  }

  /** Stores the position and the servers that lag behind it, as of one moment. */
  async saveNow(): Promise<void> {
    if (this.#isWhole) return
    const changed = [...this.#changed]
    const partings = this.#partings.length
    const news = this.#news(changed)
    this.#changed.clear()
    try {
      if (news) await this.#deps.db.tx((tx) => this.#write(tx, news))
    } catch (error) {
      for (const destination of changed) this.#changed.add(destination)
      throw error
    }
    this.#partings = this.#partings.slice(partings)
    if (news) this.#note(news)
  }

  #news(changed: readonly Destination[]): News | undefined {
    const at = this.#deps.position()
    const rows = changed.map(({ server, row }) => ({ server, row }))
    const behind = rows.flatMap(({ row }) => (row && isNews(row, this.#saved.get(row.server)) ? [row] : []))
    const caughtUp = rows.flatMap(({ server, row }) => (!row && this.#saved.has(server) ? [server] : []))
    const marks = [...this.#handedOn]
    const partings = this.#partings.flatMap(({ destination: { server, row }, eventNid }) =>
      row && row.first_unsent <= eventNid ? [{ server, event_nid: eventNid }] : [],
    )
    const count = behind.length + caughtUp.length + marks.length + partings.length
    return at === this.#position && count === 0 ? undefined : { at, behind, caughtUp, partings, marks }
  }

  async #write(tx: Tx, { at, behind, caughtUp, partings, marks }: News): Promise<void> {
    await saveSending(tx, at, behind, caughtUp)
    if (marks.length > 0) await markForwards(tx, marks)
    if (partings.length > 0) await keepPartings(tx, partings, this.#deps.clock.now())
    for (const server of caughtUp.filter((one) => this.#parted.has(one))) {
      await removePartings(tx, server, Number.MAX_SAFE_INTEGER)
    }
    for (const { server, first_unsent } of behind.filter((one) => this.#parted.has(one.server))) {
      await removePartings(tx, server, first_unsent)
    }
  }

  #note({ at, behind, caughtUp, partings, marks }: News): void {
    this.#handedOn = this.#handedOn.slice(marks.length)
    this.#position = at
    for (const server of caughtUp) {
      this.#saved.delete(server)
      this.#parted.delete(server)
    }
    for (const row of behind) this.#saved.set(row.server, row)
    for (const { server } of partings) this.#parted.add(server)
  }
}

function isNews(row: DestinationRow, known: DestinationRow | undefined): boolean {
  const { first_unsent, failures, retry_at } = row
  return known?.first_unsent !== first_unsent || known.failures !== failures || known.retry_at !== retry_at
}
