import { createCache } from '../core/cache.ts'
import { splitServerName } from '../core/ids.ts'
import { isObject, type JsonValue, readJson } from '../core/json.ts'
import type { Dialect } from '../core/paths.ts'
import type { GuardedClient, HttpAnswer } from './http.ts'
import { MAX_REMEMBERED_SERVERS, MAX_WELL_KNOWN_BYTES, MAX_WELL_KNOWN_REDIRECTS } from './limits.ts'

/** Reads and caches the delegation of hosts (server-server API, "Server discovery", step 3). */
export interface WellKnown {
  /** The server name that the host delegates to; undefined if there is none, or it is not valid. */
  delegateOf(host: string): Promise<string | undefined>
}

const TIMEOUT_MS = 10_000
const HOUR_MS = 3_600_000
const USUAL_LIFE_MS = 24 * HOUR_MS
const LONGEST_LIFE_MS = 48 * HOUR_MS
const SHORTEST_LIFE_MS = 5 * 60_000
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = HOUR_MS

interface Entry {
  readonly delegate: string | undefined
  /** The time of the host's answer. */
  readonly saidAt: number
  readonly until: number
  readonly failures: number
}

export function createWellKnown(deps: {
  readonly client: GuardedClient
  readonly now: () => number
  /** The generations of paths to look under, in this order. */
  readonly dialects: readonly Dialect[]
}): WellKnown {
  const { client, now, dialects } = deps
  const entries = createCache<string, Entry>(MAX_REMEMBERED_SERVERS)
  const running = new Map<string, Promise<Entry>>()

  /** Undefined when the host could not be asked. */
  async function ask(host: string): Promise<Omit<Entry, 'failures'> | undefined> {
    let wasReached = false
    for (const dialect of dialects) {
      const answer = await client.request({
        method: 'GET',
        url: `https://${host}/.well-known/${dialect}/server`,
        headers: { accept: 'application/json' },
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_WELL_KNOWN_BYTES,
        redirects: MAX_WELL_KNOWN_REDIRECTS,
      })
      if (!answer.ok && answer.kind !== 'too-large' && answer.kind !== 'refused') return undefined
      wasReached ||= !answer.ok || (answer.status < 500 && answer.status !== 429)
      const delegate = answer.ok && answer.status === 200 ? readDelegate(answer.body) : undefined
      const saidAt = now()
      if (delegate !== undefined && answer.ok) return { delegate, saidAt, until: saidAt + lifeOf(answer, saidAt) }
    }
    return wasReached ? { delegate: undefined, saidAt: now(), until: now() + LONGEST_PAUSE_MS } : undefined
  }

  async function refresh(host: string, before: Entry | undefined): Promise<Entry> {
    const said = await ask(host)
    if (said !== undefined) return { ...said, failures: 0 }
    const failures = (before?.failures ?? 0) + 1
    const again = now() + Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
    // A host that does not answer for a while has probably not moved its server.
    const keptUntil = (before?.saidAt ?? 0) + LONGEST_LIFE_MS
    const delegate = now() < keptUntil ? before?.delegate : undefined
    const until = delegate === undefined ? again : Math.min(again, keptUntil)
    return { delegate, saidAt: before?.saidAt ?? now(), until, failures }
  }

  return {
    async delegateOf(name) {
      const host = name.toLowerCase()
      const known = entries.get(host)
      if (known !== undefined && known.until > now()) return known.delegate
      let asking = running.get(host)
      if (asking === undefined) {
        asking = refresh(host, known).finally(() => running.delete(host))
        running.set(host, asking)
      }
      const entry = await asking
      entries.set(host, entry)
      return entry.delegate
    },
  }
}

function readDelegate(body: Buffer): string | undefined {
  const value = parse(body)
  const name = isObject(value) ? value['m.server'] : undefined
  if (typeof name !== 'string') return undefined
  const parts = splitServerName(name)
  return parts === undefined || parts.port === 0 ? undefined : name
}

function parse(body: Buffer): JsonValue | undefined {
  try {
    return readJson(body).value
  } catch {
    return undefined
  }
}

/** The lifetime of an answer by its headers, within bounds. */
function lifeOf({ headers }: HttpAnswer, now: number): number {
  const control = headers['cache-control'] ?? ''
  const seconds = /(?:^|[\s,])max-age="?(\d{1,10})/i.exec(control)?.[1]
  const expires = Date.parse(headers.expires ?? '')
  const said = seconds !== undefined ? Number(seconds) * 1000 : Number.isNaN(expires) ? USUAL_LIFE_MS : expires - now
  const wanted = /(?:^|[\s,])no-(?:store|cache)/i.test(control) ? 0 : said
  return Math.min(Math.max(wanted, SHORTEST_LIFE_MS), LONGEST_LIFE_MS)
}
