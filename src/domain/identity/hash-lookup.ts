import type { Logger } from 'pino'
import { LOOKUP_HASH_BYTES, readLookupHash } from '../../core/lookup-hash.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import { findByHashes } from '../../store/identity/peppers.ts'
import { createLookupMemory, type RememberedLookup } from './lookup-memory.ts'

export interface FoundByHash extends RememberedLookup {
  readonly source: 'memory' | 'database'
}

/** Finds bindings by the hashes of their addresses, in memory if they are loaded, otherwise in the database. */
export interface HashLookup {
  /** Returns the users of the bound entries, and the pepper of the lookup. Entries that are no hashes match nothing. */
  find(pepper: string, entries: readonly string[]): Promise<FoundByHash>
  /** How many bindings are in memory. */
  remembered(): number
  close(): void
}

/** Some 15 ms of work for two connections. */
const MAX_SOUGHT_AT_ONCE = 5_000

export function createHashLookup({ db, log }: { readonly db: Database; readonly log: Logger }): HashLookup {
  // A thousand addresses take milliseconds. Syncs should not wait for that, and lookups little for each other.
  const connect = (): Reader => db.dedicated()
  const connections = [connect(), connect()] as const
  const memory = createLookupMemory({ checks: connections[0], db, log })
  let turn: 0 | 1 = 0
  /** Roughly how many addresses the database is looking up. */
  let sought = 0

  async function findInDatabase(pepper: string, entries: readonly string[]): Promise<FoundByHash> {
    const bytes = Buffer.alloc(entries.length * LOOKUP_HASH_BYTES)
    const hashed: string[] = []
    for (const entry of entries) if (readLookupHash(entry, bytes, hashed.length * LOOKUP_HASH_BYTES)) hashed.push(entry)
    turn = turn === 0 ? 1 : 0
    sought += hashed.length
    const found = await findByHashes(
      connections[turn],
      pepper,
      bytes.subarray(0, hashed.length * LOOKUP_HASH_BYTES),
    ).finally(() => {
      sought -= hashed.length
    })
    return {
      source: 'database',
      pepper: found.pepper,
      users: new Map(Object.entries(found.users).map(([place, user]) => [hashed[Number(place)] as string, user])),
    }
  }

  return {
    async find(pepper, entries) {
      const found = await memory.find(pepper, entries)
      if (found !== undefined) return { ...found, source: 'memory' }
      const loading = memory.loading()
      if (loading === undefined || sought < MAX_SOUGHT_AT_ONCE) return findInDatabase(pepper, entries)
      // The database is overloaded. Once the bindings are in memory, it need not be asked.
      await loading
      const later = await memory.find(pepper, entries)
      return later === undefined ? findInDatabase(pepper, entries) : { ...later, source: 'memory' }
    },
    remembered: memory.size,
    close: memory.close,
  }
}
