import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import type { ServerName } from '../../core/ids.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Database } from '../../store/db/db.ts'
import { perTick } from '../../store/db/per-tick.ts'
import { findServerKeys, type ServerKeyRow, saveServerKeys } from '../../store/federation/server-keys.ts'
import type { Clock } from '../clock.ts'
import { MAX_KEYS_PER_SERVER, MAX_REMEMBERED_KEY_OWNERS } from '../limits.ts'
import type { KeyRing } from '../rooms/receive/federation-queries.ts'
import { isExposed, LONGEST_VALIDITY_MS, type ServerKey } from './key-answer.ts'
import { createKeySources, type FetchedKeys } from './key-sources.ts'
import type { OwnSigningKey } from './own-signing-key.ts'

/** The keys of other servers, and which of them are in memory. */
export interface ServerKeyRing extends KeyRing {
  /** Whether keys of a server are in memory. */
  knows(server: ServerName): boolean
}

type Keys = ReadonlyMap<string, ServerKey>

/** The first pause after an answer without the key that was looked for. */
const FIRST_VAIN_PAUSE_MS = 10_000
const LONGEST_VAIN_PAUSE_MS = 5 * 60_000
/** The first pause after a request that failed. */
const FIRST_FAILURE_PAUSE_MS = 60_000
const LONGEST_FAILURE_PAUSE_MS = 3_600_000

interface Attempts {
  readonly notBefore: number
  readonly failures: number
  readonly inVain: number
}

const NO_ATTEMPTS: Attempts = { notBefore: 0, failures: 0, inVain: 0 }

/**
 * The signing keys of other servers (server-server API, "Retrieving server keys"). They come from memory, from the database, or, if a key
 * is missing or expired, from the server itself or key servers. Callers in the meantime share the same request. A new key id is requested
 * at once, but made-up key ids make the requests to that server rarer and rarer. While the server does not answer, its known keys stay in
 * use.
 */
export function createKeyRing(deps: {
  readonly config: Pick<Config, 'server_name' | 'outbound'>
  readonly db: Database
  readonly clock: Clock
  readonly signingKey: OwnSigningKey
  readonly fetcher: KeyFetcher
  readonly log: Logger
}): ServerKeyRing {
  const { config, db, clock, signingKey, fetcher, log } = deps
  const remembered = createCache<ServerName, Keys>(MAX_REMEMBERED_KEY_OWNERS)
  const attempts = createCache<ServerName, Attempts>(MAX_REMEMBERED_KEY_OWNERS)
  const running = new Map<ServerName, Promise<Keys>>()
  const sources = createKeySources({ keyServers: config.outbound.key_servers, clock, fetcher, keysOf })
  const storedKeys = perTick((servers: readonly ServerName[]) => findServerKeys(db, servers))
  const save = saver(db)

  async function fromStore(server: ServerName): Promise<Keys> {
    const rows = (await storedKeys([server])).get(server) ?? []
    return byId(rows.map(fromRow).filter(({ publicKey }) => !isExposed(publicKey)))
  }

  /** Whether the server could have nothing new about these keys. */
  function suffice(keys: Keys, keyIds: readonly string[]): boolean {
    const now = clock.now()
    return keyIds.every((keyId) => {
      const key = keys.get(keyId)
      return key !== undefined && (key.isOld || key.validUntilTs >= now)
    })
  }

  function noteAttempt(server: ServerName, outcome: 'found' | 'in vain' | 'failed'): void {
    const { failures, inVain } = attempts.get(server) ?? NO_ATTEMPTS
    const now = clock.now()
    if (outcome === 'failed') {
      const notBefore = now + pause(failures, FIRST_FAILURE_PAUSE_MS, LONGEST_FAILURE_PAUSE_MS)
      attempts.set(server, { failures: failures + 1, inVain, notBefore })
      log.info({ server, failures: failures + 1 }, 'the keys of a server could not be fetched')
    } else if (outcome === 'in vain') {
      const notBefore = now + pause(inVain, FIRST_VAIN_PAUSE_MS, LONGEST_VAIN_PAUSE_MS)
      attempts.set(server, { failures: 0, inVain: inVain + 1, notBefore })
    } else attempts.set(server, NO_ATTEMPTS)
  }

  async function refresh(server: ServerName, keyIds: readonly string[]): Promise<Keys> {
    const stored = await fromStore(server)
    if (suffice(stored, keyIds)) return stored
    const fetched = await sources.ask(server, keyIds)
    const news = fetched === undefined ? [] : newsIn(fetched, stored)
    const keys = news.length === 0 ? stored : new Map([...stored, ...byId(news)])
    noteAttempt(server, fetched === undefined ? 'failed' : suffice(keys, keyIds) ? 'found' : 'in vain')
    if (news.length > 0) await save(server, news)
    return keys
  }

  async function remember(server: ServerName, keys: Promise<Keys>): Promise<Keys> {
    const found = await keys
    remembered.set(server, found)
    return found
  }

  function refreshOnce(server: ServerName, keyIds: readonly string[]): Promise<Keys> {
    const already = running.get(server)
    if (already !== undefined) return already
    const started = remember(server, refresh(server, keyIds)).finally(() => running.delete(server))
    running.set(server, started)
    return started
  }

  const mayAsk = (server: ServerName) => (attempts.get(server)?.notBefore ?? 0) <= clock.now()

  async function keysOf(server: ServerName, keyIds: readonly string[]): Promise<readonly ServerKey[]> {
    if (server === config.server_name) return own(keyIds)
    let keys = remembered.get(server) ?? (await remember(server, fromStore(server)))
    const asked = running.get(server)
    if (asked !== undefined && !suffice(keys, keyIds)) keys = await asked
    // A request that another caller started may not have brought the keys that are needed here.
    if (!suffice(keys, keyIds) && mayAsk(server)) keys = await refreshOnce(server, keyIds)
    return keyIds.flatMap((keyId) => keys.get(keyId) ?? [])
  }

  function own(keyIds: readonly string[]): readonly ServerKey[] {
    const { keyId, publicKey, former } = signingKey
    const current = { keyId, publicKey, validUntilTs: clock.now() + LONGEST_VALIDITY_MS, isOld: false }
    const old = former.map((key) => ({
      ...{ keyId: key.keyId, publicKey: key.publicKey, isOld: true },
      validUntilTs: key.expiredTs,
    }))
    return [current, ...old].filter((key) => keyIds.includes(key.keyId))
  }

  return { keysOf, knows: (server) => (remembered.get(server)?.size ?? 0) > 0 }
}

/** Writes the keys of many servers together: those that arrive while the database writes go into the next write. */
function saver(db: Database): (server: ServerName, keys: readonly ServerKey[]) => Promise<void> {
  const write = perTick(async (entries: readonly (readonly [ServerName, readonly ServerKey[]])[]) => {
    const rows = entries.flatMap(([server, keys]) => keys.map((key) => toRow(server, key)))
    await db.tx((tx) => saveServerKeys(tx, rows, MAX_KEYS_PER_SERVER))
    return new Map()
  })
  return async (server, keys) => void (await write([[server, keys]]))
}

/** A key server may not know yet that a key has been retired. */
function newsIn({ keys, isFirstHand }: FetchedKeys, known: Keys): readonly ServerKey[] {
  return isFirstHand ? keys : keys.filter((key) => isNews(key, known.get(key.keyId)))
}

function isNews(fetched: ServerKey, known: ServerKey | undefined): boolean {
  return known === undefined || (!known.isOld && fetched.validUntilTs > known.validUntilTs)
}

function pause(times: number, first: number, longest: number): number {
  return Math.min(first * 2 ** Math.min(times, 20), longest)
}

function byId(keys: readonly ServerKey[]): Keys {
  return new Map(keys.map((key) => [key.keyId, key]))
}

function toRow(server: ServerName, { keyId, publicKey, validUntilTs, isOld }: ServerKey): ServerKeyRow {
  return { server_name: server, key_id: keyId, public_key: publicKey, valid_until: validUntilTs, is_old: isOld }
}

function fromRow({ key_id: keyId, public_key: publicKey, valid_until: validUntilTs, is_old: isOld }: ServerKeyRow) {
  return { keyId, publicKey, validUntilTs, isOld }
}
