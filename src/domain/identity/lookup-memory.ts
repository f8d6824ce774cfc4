import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { UserId } from '../../core/ids.ts'
import { LOOKUP_HASH_BYTES, readLookupHash } from '../../core/lookup-hash.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import {
  type HashedBindings,
  hashBindingsAfter,
  type LookupState,
  type PepperRow,
  readLookupState,
} from '../../store/identity/lookup-changes.ts'
import { LOOKUP_CHANGES_KEPT, MAX_BINDINGS_IN_MEMORY } from '../limits.ts'
import { LookupTable } from './lookup-table.ts'

/**
 * All bindings in memory by the hashes of their addresses, while there are lookups: with the current pepper and, during a rotation, the
 * next.
 *
 * The copy is never used unchecked: before each answer a query asks the database which changes came since. Callers that wait at the same
 * time share that query, which reads one row. So an answer is as fresh as one from the database, whichever process wrote.
 */
export interface LookupMemory {
  /** The users of the bound entries, and the current pepper; undefined if only the database can answer. */
  find(pepper: string, entries: readonly string[]): Promise<RememberedLookup | undefined>
  /** Settles when the load in progress ends, whether it succeeds or not; undefined if nothing is being loaded. */
  loading(): Promise<void> | undefined
  /** How many bindings it holds, under one pepper. */
  size(): number
  close(): void
}

export interface RememberedLookup {
  readonly pepper: string
  /** Empty if the request named another pepper. */
  readonly users: ReadonlyMap<string, UserId>
}

/** All hashes with one pepper, as of this version. */
interface Generation extends PepperRow {
  readonly table: LookupTable
  version: number
  /** How many changes were applied. The entries that they replaced still take memory. */
  changes: number
}

const BINDINGS_AT_ONCE = 2_000
const VERSIONS_AT_ONCE = 1_000
/** The next generation must be loaded before its pepper is in use. */
const LONGEST_PAUSE_MS = 10
/** Without lookups for this long the memory is freed. */
const IDLE_MS = 900_000

/** Lets concurrent callers share a result, but never one whose query began before they called. */
function shared<T>(make: () => Promise<T>): () => Promise<T> {
  let gathering: Promise<T> | undefined
  let running: Promise<unknown> = Promise.resolve()
  return () => {
    gathering ??= running.then(() => {
      gathering = undefined
      const made = make()
      running = made.catch(() => undefined)
      return made
    })
    return gathering
  }
}

function fill(table: LookupTable, { count, hashes, users }: HashedBindings): void {
  let start = 0
  for (let n = 0; n < count; n++) {
    const end = users.indexOf(0, start)
    hashes.copy(table.key, 0, n * LOOKUP_HASH_BYTES, (n + 1) * LOOKUP_HASH_BYTES)
    table.set(users.subarray(start, end < 0 ? users.length : end))
    start = end + 1
  }
}

function findAll(table: LookupTable, entries: readonly string[]): ReadonlyMap<string, UserId> {
  const users = new Map<string, UserId>()
  for (const entry of entries) {
    const user = readLookupHash(entry, table.key) ? table.find() : undefined
    if (user !== undefined) users.set(entry, user as UserId)
  }
  return users
}

/** Applies the changes between two versions to a generation. */
function advance(generation: Generation, { changes }: LookupState, version: number): void {
  const { nid, table } = generation
  for (const change of changes) {
    if (change.pepperNid !== nid || change.version <= generation.version) continue
    table.key.set(change.hash)
    if (change.user === null) table.delete()
    else table.set(Buffer.from(change.user))
    generation.changes++
  }
  generation.version = Math.max(generation.version, version)
}

export function createLookupMemory(deps: {
  /** For queries that take no time. */
  readonly checks: Reader
  /** For long queries. */
  readonly db: Pick<Database, 'tx'>
  readonly log: Logger
  readonly maxBindings?: number
  readonly idleMs?: number
}): LookupMemory {
  const { checks, db, log, maxBindings = MAX_BINDINGS_IN_MEMORY, idleMs = IDLE_MS } = deps
  let generations: Generation[] = []
  let loading: Promise<void> | undefined
  /** Changes when all is dropped. */
  let epoch = 0
  let idle: NodeJS.Timeout | undefined
  let tooMany: string | undefined

  function forget(): void {
    epoch++
    generations = []
  }

  const has = ({ pepper }: PepperRow): boolean => generations.some((generation) => generation.pepper === pepper)

  const isMissing = (wanted: PepperRow | undefined): wanted is PepperRow =>
    wanted !== undefined && wanted.pepper !== tooMany && !has(wanted)

  /** Applies the changes between two versions. Drops all if changes are missing, or if there were too many. */
  function follow(state: LookupState, since: number): void {
    const until = Math.min(since + VERSIONS_AT_ONCE, state.version)
    const versions = new Set(state.changes.map(({ version }) => version)).size
    if (versions !== until - since) forget()
    for (const generation of generations) if (generation.version >= since) advance(generation, state, until)
    const isWorn = ({ changes, table }: Generation) => changes > Math.max(LOOKUP_CHANGES_KEPT, table.size)
    if (generations.some(isWorn)) forget()
  }

  const catchUp = shared(async (): Promise<LookupState> => {
    for (;;) {
      const began = epoch
      const isEmpty = generations.length === 0
      const since = isEmpty ? 0 : Math.min(...generations.map(({ version }) => version))
      const state = await readLookupState(checks, { after: since, upTo: since + (isEmpty ? 0 : VERSIONS_AT_ONCE) })
      const inUse = [state.current.pepper, state.next?.pepper]
      generations = generations.filter(({ pepper }) => inUse.includes(pepper))
      if (epoch === began && !isEmpty) follow(state, since)
      if (generations.every(({ version }) => version >= state.version)) return state
    }
  })

  /** Loads a generation in parts. `version` is the one before the load: later changes are applied from there. */
  async function load({ nid, pepper }: PepperRow, version: number): Promise<void> {
    const table = new LookupTable()
    const began = epoch
    let after = 0
    while (epoch === began) {
      const from = performance.now()
      const piece = await db.tx((tx) => hashBindingsAfter(tx, { after, pepper, atMost: BINDINGS_AT_ONCE }))
      if (epoch !== began) return
      if (piece === undefined) return void generations.push({ nid, pepper, table, version, changes: 0 })
      fill(table, piece)
      after = piece.last
      if (table.size > maxBindings) {
        tooMany = pepper
        return log.info(
          { more_than: maxBindings },
          'lookups ask the database: there are more bindings than are remembered',
        )
      }
      // Lookups that are answered from memory get half of the time.
      if (generations.length > 0) await pause(Math.min(performance.now() - from, LONGEST_PAUSE_MS))
    }
  }

  async function loadMissing(): Promise<void> {
    const { version, current, next } = await readLookupState(checks, { after: 0, upTo: 0 })
    for (const pepper of [current, next]) if (isMissing(pepper)) await load(pepper, version)
  }

  function startLoading(): void {
    if (loading !== undefined) return
    const read = loadMissing().catch((error: unknown) => {
      log.warn({ err: error }, 'bindings were not read into memory; lookups ask the database')
    })
    loading = read.finally(() => {
      loading = undefined
    })
  }

  return {
    async find(pepper, entries) {
      idle = idle?.refresh() ?? setTimeout(forget, idleMs).unref()
      if (generations.length === 0) {
        startLoading()
        return undefined
      }
      const { current, next } = await catchUp()
      if (isMissing(current) || isMissing(next)) startLoading()
      const generation = generations.find((each) => each.pepper === current.pepper)
      if (generation === undefined) return undefined
      return {
        pepper: current.pepper,
        users: pepper === current.pepper ? findAll(generation.table, entries) : new Map(),
      }
    },
    loading: () => loading,
    size: () => Math.max(0, ...generations.map(({ table }) => table.size)),
    close() {
      clearTimeout(idle)
      forget()
    },
  }
}
