import { createHash } from 'node:crypto'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { type CompiledFilter, compileFilter, type Filter } from '../../core/filter.ts'
import { readFilter } from '../../core/filter-reader.ts'
import { type JsonObject, type JsonValue, readJson } from '../../core/json.ts'
import { findFilter, findFilterByDigest, insertFilter, trimFilters } from '../../store/accounts/filters.ts'
import type { Database } from '../../store/db/db.ts'
import { MAX_FILTER_BYTES } from '../limits/filters.ts'
import { MAX_FILTERS_PER_USER } from '../limits.ts'

export interface Filters {
  /**
   * Stores a filter and returns its id. Equal definitions get the same id.
   * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`, `M_TOO_LARGE`
   */
  define(userNid: number, definition: JsonObject): Promise<string>
  /** The definition as the client sent it. @throws ProtocolError `M_NOT_FOUND` */
  get(userNid: number, filterId: string): Promise<Filter>
  /** The filter, compiled. @throws as `get` */
  compiled(userNid: number, filterId: string): Promise<CompiledFilter>
  /**
   * The filter of a request: its definition as JSON, or the id of a stored one. Without either, nothing is filtered out.
   * @throws as `get` and `define`
   */
  ofRequest(userNid: number, text: string | undefined): CompiledFilter | Promise<CompiledFilter>
}

const MAX_COMPILED = 1000
/** A longer definition is compiled each time: a cache of a thousand of them would take too much memory. */
const MAX_REMEMBERED_CHARS = 4096

export function createFilters({ db }: { readonly db: Database }): Filters {
  const compiled = createCache<string, CompiledFilter>(MAX_COMPILED)

  async function stored(userNid: number, filterId: string): Promise<string> {
    const text = /^\d{1,15}$/.test(filterId) ? await findFilter(db, userNid, Number(filterId)) : undefined
    if (text === undefined) throw new ProtocolError('M_NOT_FOUND', 'You have no such filter.')
    return text
  }

  async function byId(userNid: number, filterId: string): Promise<CompiledFilter> {
    const key = `${userNid} ${filterId}`
    const known = compiled.get(key)
    if (known !== undefined) return known
    const text = await stored(userNid, filterId)
    // All who use one client have the same filter, and syncs share what they write for one and the same.
    const fresh = compiled.get(text) ?? compileFilter(JSON.parse(text) as Filter)
    if (text.length <= MAX_REMEMBERED_CHARS) compiled.set(text, fresh).set(key, fresh)
    return fresh
  }

  function byDefinition(text: string): CompiledFilter {
    const known = compiled.get(text)
    if (known !== undefined) return known
    const reading = readFilter(parseDefinition(text))
    if (!reading.allowed) throw new ProtocolError(reading.errcode ?? 'M_BAD_JSON', reading.reason)
    const fresh = compileFilter(reading.filter)
    if (text.length <= MAX_REMEMBERED_CHARS) compiled.set(text, fresh)
    return fresh
  }

  return {
    get: async (userNid, filterId) => JSON.parse(await stored(userNid, filterId)) as Filter,
    async define(userNid, definition) {
      const reading = readFilter(definition)
      if (!reading.allowed) throw new ProtocolError(reading.errcode ?? 'M_BAD_JSON', reading.reason)
      const text = JSON.stringify(reading.filter)
      if (Buffer.byteLength(text) > MAX_FILTER_BYTES) {
        throw new ProtocolError('M_TOO_LARGE', `A filter may have ${MAX_FILTER_BYTES} bytes.`)
      }
      const digest = createHash('sha256').update(text).digest()
      const known = await findFilterByDigest(db, userNid, digest)
      if (known !== undefined) return String(known)
      return db.tx(async (tx) => {
        const filterNid = await insertFilter(tx, userNid, digest, text)
        await trimFilters(tx, userNid, MAX_FILTERS_PER_USER)
        return String(filterNid)
      })
    },
    compiled: byId,
    ofRequest(userNid, text) {
      if (text === undefined || text === '') return UNFILTERED
      return text.startsWith('{') ? byDefinition(text) : byId(userNid, text)
    },
  }
}

const UNFILTERED = compileFilter()

function parseDefinition(text: string): JsonValue {
  try {
    return readJson(text).value
  } catch {
    throw new ProtocolError('M_INVALID_PARAM', '`filter` is neither the id of a filter nor the JSON of one.')
  }
}
