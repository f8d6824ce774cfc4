import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import type { ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject } from '../../core/json.ts'
import { verifyJson } from '../../core/signing/json-signature.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Database } from '../../store/db.ts'
import { findServerKeys, saveServerKeys } from '../../store/server-keys.ts'
import type { Clock } from '../clock.ts'
import { MAX_KEYS_PER_SERVER, MAX_REMEMBERED_KEY_OWNERS } from '../limits.ts'
import type { KeyRing } from '../rooms/questions.ts'
import { LONGEST_VALIDITY_MS, readKeyAnswer, type ServerKey } from './key-answer.ts'

/** The keys of other servers, and of which ones there are any at hand. */
export interface ServerKeyRing extends KeyRing {
  /** Whether keys of a server are in memory. */
  knows(server: ServerName): boolean
}

type Keys = ReadonlyMap<string, ServerKey>

/** After an answer, and after failures one after the other. */
const PAUSE_MS = 5 * 60_000
const FIRST_FAILURE_PAUSE_MS = 60_000
const LONGEST_FAILURE_PAUSE_MS = 3_600_000

interface Attempts {
  readonly notBefore: number
  readonly failures: number
}

/**
 * The signing keys of other servers (server-server API, "Retrieving server keys"): from memory, from the database, and from the
 * server itself when one that is asked for is missing or has run out. Whoever asks meanwhile waits for the same request. A server
 * is asked again after five minutes at the earliest; while it does not answer, what is known of it stays in use, and the configured
 * key servers are asked for it.
 */
export function createKeyRing(deps: {
  readonly config: Pick<Config, 'server_name' | 'outbound'>
  readonly db: Database
  readonly clock: Clock
  readonly signingKey: SigningKey
  readonly fetcher: KeyFetcher
  readonly log: Logger
}): ServerKeyRing {
  const { config, db, clock, signingKey, fetcher, log } = deps
  const remembered = createCache<ServerName, Keys>(MAX_REMEMBERED_KEY_OWNERS)
  const attempts = createCache<ServerName, Attempts>(MAX_REMEMBERED_KEY_OWNERS)
  const running = new Map<ServerName, Promise<Keys>>()

  async function fromStore(server: ServerName): Promise<Keys> {
    const rows = await findServerKeys(db, server)
    const keys = rows.map(({ key_id: keyId, public_key: publicKey, valid_until: validUntilTs, is_old: isOld }) => {
      return { keyId, publicKey, validUntilTs, isOld }
    })
    return byId(keys)
  }

  /** Whether asking the server would tell nothing new about these keys. */
  function suffice(keys: Keys, keyIds: readonly string[]): boolean {
    const now = clock.now()
    return keyIds.every((keyId) => {
      const key = keys.get(keyId)
      return key !== undefined && (key.isOld || key.validUntilTs >= now)
    })
  }

  /** What a key server has signed counts as said by the server itself, where that does not answer. */
  async function byNotary(notary: ServerName, server: ServerName): Promise<readonly ServerKey[] | undefined> {
    for (const answer of await fetcher.byNotary(notary, server)) {
      const keys = readKeyAnswer(server, answer, clock.now())
      if (keys !== undefined && (await isSignedBy(notary, answer))) return keys
    }
    return undefined
  }

  async function isSignedBy(notary: ServerName, answer: JsonObject): Promise<boolean> {
    const signatures = isObject(answer.signatures) ? answer.signatures[notary] : undefined
    const keyIds = isObject(signatures) ? Object.keys(signatures).slice(0, MAX_KEYS_PER_SERVER) : []
    const now = clock.now()
    const keys = (await keysOf(notary, keyIds)).filter(({ validUntilTs }) => validUntilTs >= now)
    return keys.some(({ keyId, publicKey }) => verifyJson(answer, notary, keyId, publicKey))
  }

  async function ask(server: ServerName, known: Keys): Promise<readonly ServerKey[] | undefined> {
    const answer = await fetcher.own(server)
    const own = answer && readKeyAnswer(server, answer, clock.now())
    if (own !== undefined) return own
    const { key_servers } = config.outbound
    // A key server speaks for itself, or two of them would wait for each other.
    for (const notary of key_servers.includes(server) ? [] : key_servers) {
      const told = await byNotary(notary, server)
      // It may not have heard yet that a key went out of use.
      if (told !== undefined) return told.filter((key) => isNews(key, known.get(key.keyId)))
    }
    return undefined
  }

  async function refresh(server: ServerName, keyIds: readonly string[]): Promise<Keys> {
    const stored = await fromStore(server)
    if (suffice(stored, keyIds)) return stored
    const told = await ask(server, stored)
    if (told === undefined) {
      const failures = (attempts.get(server)?.failures ?? 0) + 1
      const pause = Math.min(FIRST_FAILURE_PAUSE_MS * 2 ** (failures - 1), LONGEST_FAILURE_PAUSE_MS)
      attempts.set(server, { failures, notBefore: clock.now() + pause })
      log.info({ server, failures }, 'the keys of a server could not be fetched')
      return stored
    }
    attempts.set(server, { failures: 0, notBefore: clock.now() + PAUSE_MS })
    await db.tx((tx) => saveServerKeys(tx, server, told.map(toRow), MAX_KEYS_PER_SERVER))
    return new Map([...stored, ...byId(told)])
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

  async function keysOf(server: ServerName, keyIds: readonly string[]): Promise<readonly ServerKey[]> {
    if (server === config.server_name) return own(keyIds)
    const known = remembered.get(server) ?? (await remember(server, fromStore(server)))
    const mayAsk = running.has(server) || (attempts.get(server)?.notBefore ?? 0) <= clock.now()
    const keys = suffice(known, keyIds) || !mayAsk ? known : await refreshOnce(server, keyIds)
    return keyIds.flatMap((keyId) => keys.get(keyId) ?? [])
  }

  function own(keyIds: readonly string[]): readonly ServerKey[] {
    const { keyId, publicKey } = signingKey
    const key = { keyId, publicKey, validUntilTs: clock.now() + LONGEST_VALIDITY_MS, isOld: false }
    return keyIds.includes(keyId) ? [key] : []
  }

  return { keysOf, knows: (server) => (remembered.get(server)?.size ?? 0) > 0 }
}

function isNews(told: ServerKey, known: ServerKey | undefined): boolean {
  return known === undefined || (!known.isOld && told.validUntilTs > known.validUntilTs)
}

function byId(keys: readonly ServerKey[]): Keys {
  return new Map(keys.map((key) => [key.keyId, key]))
}

function toRow({ keyId, publicKey, validUntilTs, isOld }: ServerKey) {
  return { key_id: keyId, public_key: publicKey, valid_until: validUntilTs, is_old: isOld }
}
