import type { CacheUses } from '../../core/byte-budget.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { addressesSeenAt, recordSightings, type Sighting } from '../../store/accounts/devices.ts'
import { confirmRenewal, findSession, findToken, type TokenRow } from '../../store/accounts/tokens.ts'
import type { Database, Reader } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { ADDRESS_KNOWN_MS, MAX_KNOWN_ADDRESSES } from '../limits.ts'
import { networkOf } from '../network.ts'
import { hashAccessToken, isAccessToken } from './access-tokens.ts'
import { accountLocked, type Requester } from './requester.ts'

/** Finds the user of an access token, with a cache, and records when each device was last seen. */
export interface Sessions {
  /**
   * The user of a token. Returns without a promise if the token is cached.
   * @throws ProtocolError `M_UNKNOWN_TOKEN` with `soft_logout` if the token has expired
   */
  find(token: string): Requester | undefined | Promise<Requester | undefined>
  /** Records that a device was seen. It is written later, together with others, and at most once a minute per device. */
  seen(requester: Requester, ip: () => string, userAgent: string | undefined): void
  /** Whether a session of the user was seen at an address of this network lately. `networkOf` gives the network. */
  hasBeenAt(userNid: number, network: string, reader?: Reader): Promise<boolean>
  /** Removes tokens of a user's device, or of all the user's devices, from the cache. Call it after their rows are deleted. */
  forget(userNid: number, deviceId?: string): void
  /** Calls the listener after each `forget`: for all sessions of a user, or those of one device. */
  onForget(listener: (userNid: number, deviceId?: string) => void): void
  /** Whether the requester is still in the cache. */
  isRemembered(requester: Requester): boolean
  /** When the requester's token expires; Infinity if it does not. */
  endOf(requester: Requester): number
  /**
   * Checks that the requester's session still exists. Its token may have been refreshed since.
   * @throws ProtocolError as a request in it would: `M_UNKNOWN_TOKEN`, `M_USER_LOCKED`
   */
  verify(requester: Pick<Requester, 'tokenNid'>): Promise<void>
  /** How often a token was looked for in the cache, and was there. */
  readonly uses: Readonly<CacheUses>
  /** Writes what `seen` has collected. */
  flush(): Promise<void>
  close(): Promise<void>
}

interface Entry {
  readonly requester: Requester
  readonly expiresAt: number
  seenAt: number
  isRemembered: boolean
}

const MAX_REMEMBERED = 50_000
/** A device is recorded as seen so often at most. */
export const SEEN_EVERY_MS = 60_000
const FLUSH_EVERY_MS = 10_000
const MAX_USER_AGENT_CHARS = 256
/** For so long after a restore, a session that is not known may be one that began after the backup. */
const LOST_SESSIONS_KNOWN_MS = 30 * 86_400_000

interface SessionParts {
  readonly db: Database
  readonly clock: Clock
  /** When the database was restored from a backup, if it was. */
  readonly restores?: { readonly restoredAt: number | undefined }
}

/** The holder of a token. */
export function requesterOf(row: TokenRow): Requester {
  return {
    userId: row.user_id,
    userNid: row.user_nid,
    deviceId: row.device_id,
    tokenNid: row.token_nid,
    ...(row.earlier.length > 0 && { earlierTokens: row.earlier }),
    isGuest: row.is_guest,
    isLocked: row.is_locked,
    isSuspended: row.is_suspended,
    ...(row.is_oauth && { isOauth: true as const }),
  }
}

export function createSessions({ db, clock, restores }: SessionParts): Sessions {
  const entryOf = new WeakMap<Requester, Entry>()
  const uses = { hits: 0, misses: 0 }
  const hashesOf = new Map<number, Set<string>>()
  const remembered = createCache<string, Entry>(MAX_REMEMBERED, {
    dispose(entry, hash) {
      const { userNid } = entry.requester
      entry.isRemembered = false
      const hashes = hashesOf.get(userNid)
      hashes?.delete(hash)
      if (hashes?.size === 0) hashesOf.delete(userNid)
    },
  })
  const addresses = createCache<string, number>(MAX_KNOWN_ADDRESSES)
  let sightings = new Map<string, Sighting>()
  let timer: NodeJS.Timeout | undefined
  // A query that began before a `forget` may have read rows that are gone now, so its result is not cached.
  let forgotten = 0
  const listeners: ((userNid: number, deviceId?: string) => void)[] = []

  function remember(hash: string, entry: Entry): void {
    const { userNid } = entry.requester
    const hashes = hashesOf.get(userNid) ?? new Set()
    hashesOf.set(userNid, hashes.add(hash))
    remembered.set(hash, entry)
    entry.isRemembered = true
  }

  /** A client can refresh an expired token, or its device logs in again. So this is a soft logout, and the client keeps its data. */
  function holderOf({ requester, expiresAt }: Entry): Requester {
    if (clock.now() < expiresAt) return requester
    throw expired()
  }

  async function read(hash: string): Promise<Requester | undefined> {
    const before = forgotten
    const row = await findToken(db, Buffer.from(hash, 'base64'))
    if (row === undefined) return noSession(clock.now() - (restores?.restoredAt ?? Number.NEGATIVE_INFINITY))
    const requester = requesterOf(row)
    const entry = { requester, seenAt: 0, isRemembered: false, expiresAt: row.expires_at ?? Number.POSITIVE_INFINITY }
    const holder = holderOf(entry)
    const { token_nid, renewed_by } = row
    if (renewed_by !== null) await db.tx((tx) => confirmRenewal(tx, token_nid, renewed_by, clock.now()))
    entryOf.set(requester, entry)
    if (forgotten === before) remember(hash, entry)
    return holder
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (sightings.size === 0) return
    const batch = [...sightings.values()]
    sightings = new Map()
    await db.tx((tx) => recordSightings(tx, batch))
  }

  return {
    uses,
    find(token) {
      const hash = hashAccessToken(token)
      const entry = remembered.get(hash)
      uses[entry ? 'hits' : 'misses']++
      if (entry !== undefined) return holderOf(entry)
      return isAccessToken(token) ? read(hash) : undefined
    },
    seen(requester, ip, userAgent) {
      const now = clock.now()
      const entry = entryOf.get(requester)
      if (entry === undefined || now - entry.seenAt < SEEN_EVERY_MS) return
      entry.seenAt = now
      const { userNid, deviceId } = requester
      const address = ip()
      addresses.set(`${userNid} ${networkOf(address)}`, now)
      sightings.set(`${userNid} ${deviceId}`, {
        userNid,
        deviceId,
        at: now,
        ip: address,
        userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARS),
      })
      // A failed write is dropped: the device is seen again within a minute.
      timer ??= setTimeout(() => void flush().catch(() => {}), FLUSH_EVERY_MS).unref()
    },
    async hasBeenAt(userNid, network, reader = db) {
      const since = clock.now() - ADDRESS_KNOWN_MS
      if ((addresses.peek(`${userNid} ${network}`) ?? 0) > since) return true
      const seen = await addressesSeenAt(reader, userNid, since)
      return seen.some((address) => networkOf(address) === network)
    },
    forget(userNid, deviceId) {
      forgotten += 1
      for (const hash of [...(hashesOf.get(userNid) ?? [])]) {
        if (deviceId === undefined || remembered.peek(hash)?.requester.deviceId === deviceId) remembered.delete(hash)
      }
      for (const listener of listeners) listener(userNid, deviceId)
    },
    isRemembered: (requester) => entryOf.get(requester)?.isRemembered === true,
    endOf: (requester) => entryOf.get(requester)?.expiresAt ?? Number.POSITIVE_INFINITY,
    async verify({ tokenNid }) {
      const session = await findSession(db, tokenNid)
      if (session === undefined) throw unknownToken()
      if ((session.expires_at ?? Number.POSITIVE_INFINITY) <= clock.now()) throw expired()
      if (session.is_locked) throw accountLocked()
    },
    onForget: (listener) => void listeners.push(listener),
    flush,
    close: () => flush(),
  }
}

function expired(): ProtocolError {
  return new ProtocolError('M_UNKNOWN_TOKEN', 'The access token has expired.', { extra: { soft_logout: true } })
}

/** A client that is logged out otherwise deletes its keys, with which its user reads what was encrypted. */
function noSession(msSinceRestore: number): undefined {
  if (msSinceRestore > LOST_SESSIONS_KNOWN_MS) return undefined
  const text = 'This session is not known here. It may have been lost with a restore of the server: log in again.'
  throw new ProtocolError('M_UNKNOWN_TOKEN', text, { extra: { soft_logout: true } })
}

function unknownToken(): ProtocolError {
  return new ProtocolError('M_UNKNOWN_TOKEN', 'The access token is not known here.')
}
