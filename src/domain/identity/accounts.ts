import type { Config } from '../../config/schema.ts'
import { createCache } from '../../core/cache.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isServerName, isUserId, type ServerName, serverOf, splitServerName, type UserId } from '../../core/ids.ts'
import type { Database } from '../../store/db/db.ts'
import {
  deleteIdentityAccount,
  deleteIdentityToken,
  deleteIdentityTokensOf,
  ensureIdentityAccount,
  findIdentityToken,
  insertIdentityToken,
  touchIdentityToken,
} from '../../store/identity/accounts.ts'
import type { OpenIdTokens } from '../accounts/openid-tokens.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_IDENTITY_TOKENS_PER_USER, MAX_OPENID_TOKEN_CHARS } from '../limits.ts'
import { hashToken, tokenKind } from '../opaque-tokens.ts'
import { checkText } from '../text.ts'
import type { OpenIdVerifier } from './openid-verifier.ts'
import type { IdentityRequester } from './requester.ts'

/** Who may use the identity service, and by which tokens (identity service API, "Authentication"). */
export interface IdentityAccounts {
  /**
   * Registers the user that a homeserver confirms, and returns a new access token.
   * @throws ProtocolError `M_INVALID_PARAM` for an invalid server name or token, `M_UNAUTHORIZED` if the homeserver does not confirm one
   *   of its own users, `M_UNKNOWN` (502) if it does not answer
   */
  register(serverName: string, openIdToken: string): Promise<string>
  /** The user of a token. Returns without a promise if the token is cached. */
  find(token: string): IdentityRequester | undefined | Promise<IdentityRequester | undefined>
  /** Ends the token. The user's other tokens stay valid. */
  logout(requester: IdentityRequester): Promise<void>
  /** Deletes the account with its tokens and accepted terms. Returns how many tokens it had; undefined if there is none. */
  erase(userId: UserId): Promise<number | undefined>
  /** Ends all tokens of a user. */
  removeAll(userId: UserId): Promise<void>
}

interface Entry {
  readonly requester: IdentityRequester
  usedAt: number
}

const IDENTITY_TOKENS = tokenKind('hearth_identity_')
const MAX_REMEMBERED = 50_000
/** The time of last use is stored at most this often. */
const TOUCH_EVERY_MS = 300_000

/** @throws ProtocolError `M_INVALID_PARAM` */
function checkServerName(name: string): ServerName {
  if (isServerName(name) && splitServerName(name)?.port !== 0) return name
  throw new ProtocolError('M_INVALID_PARAM', 'The server name is not one.')
}

/** A server may confirm only its own users: the part after the FIRST colon must be the server that was asked. */
function checkSubject(sub: string | undefined, server: ServerName): UserId {
  if (isUserId(sub) && serverOf(sub).toLowerCase() === server.toLowerCase()) return sub
  throw new ProtocolError('M_UNAUTHORIZED', 'The homeserver does not vouch for a user of its own by this token.')
}

export function createIdentityAccounts(deps: {
  readonly config: Pick<Config, 'identity' | 'server_name' | 'roles'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly openIdTokens: Pick<OpenIdTokens, 'userOf'>
  readonly openIdVerifier: OpenIdVerifier
}): IdentityAccounts {
  const { config, db, clock, random } = deps
  const lifetimeMs = config.identity.tokens.lifetime_hours * 3_600_000
  const keyOf = new Map<number, string>()
  const remembered = createCache<string, Entry>(MAX_REMEMBERED, {
    dispose: ({ requester }) => keyOf.delete(requester.tokenNid),
  })
  // A query that began before a token was removed may have read rows that are gone now, so its result is not cached.
  let removals = 0

  const isHere = (server: ServerName): boolean =>
    config.roles.includes('client') && server.toLowerCase() === config.server_name.toLowerCase()

  const isOver = (usedAt: number, now: number): boolean => lifetimeMs > 0 && now - usedAt > lifetimeMs

  function forget(tokenNids: readonly number[]): void {
    if (tokenNids.length > 0) removals += 1
    for (const tokenNid of tokenNids) remembered.delete(keyOf.get(tokenNid) ?? '')
  }

  async function touch(entry: Entry, now: number): Promise<IdentityRequester> {
    entry.usedAt = now
    await db.tx((tx) => touchIdentityToken(tx, entry.requester.tokenNid, now))
    return entry.requester
  }

  async function read(key: string, hash: Buffer): Promise<IdentityRequester | undefined> {
    const before = removals
    const row = await findIdentityToken(db, hash)
    const now = clock.now()
    if (row === undefined || isOver(row.used_at, now)) return undefined
    const entry = { requester: { userId: row.user_id, tokenNid: row.token_nid }, usedAt: row.used_at }
    if (removals === before) {
      remembered.set(key, entry)
      keyOf.set(row.token_nid, key)
    }
    return now - entry.usedAt > TOUCH_EVERY_MS ? touch(entry, now) : entry.requester
  }

  return {
    async register(serverName, openIdToken) {
      const server = checkServerName(serverName)
      checkText('access_token', openIdToken, MAX_OPENID_TOKEN_CHARS)
      const { openIdTokens, openIdVerifier } = deps
      const sub = isHere(server)
        ? await openIdTokens.userOf(openIdToken)
        : await openIdVerifier.subjectOf(server, openIdToken)
      const userId = checkSubject(sub, server)
      const token = IDENTITY_TOKENS.make(random)
      const now = clock.now()
      const hash = hashToken(token)
      const outdated = await db.tx(async (tx) => {
        await ensureIdentityAccount(tx, userId, now)
        return insertIdentityToken(tx, { hash, userId, now }, MAX_IDENTITY_TOKENS_PER_USER)
      })
      forget(outdated)
      return token
    },
    find(token) {
      if (!IDENTITY_TOKENS.recognises(token)) return undefined
      const hash = hashToken(token)
      const key = hash.toString('base64')
      const entry = remembered.get(key)
      if (entry === undefined) return read(key, hash)
      const now = clock.now()
      if (isOver(entry.usedAt, now)) return undefined
      return now - entry.usedAt > TOUCH_EVERY_MS ? touch(entry, now) : entry.requester
    },
    async logout({ tokenNid }) {
      await db.tx((tx) => deleteIdentityToken(tx, tokenNid))
      forget([tokenNid])
    },
    async erase(userId) {
      const tokens = await db.tx((tx) => deleteIdentityAccount(tx, userId))
      forget(tokens ?? [])
      return tokens?.length
    },
    async removeAll(userId) {
      forget(await db.tx((tx) => deleteIdentityTokensOf(tx, userId)))
    },
  }
}
