import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { lockAccount } from '../../store/accounts/accounts.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import {
  deleteWebSession,
  deleteWebSessionsOf,
  findWebSession,
  insertWebSession,
  proveWebSession,
  restampWebSession,
  touchWebSession,
} from '../../store/oauth/web-sessions.ts'
import type { LoginTokens } from '../accounts/login-tokens.ts'
import type { Logins } from '../accounts/logins.ts'
import { accountLocked } from '../accounts/requester.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_WEB_SESSIONS_PER_USER, RECENT_PROOF_MS, WEB_SESSION_IDLE_MS, WEB_SESSION_MS } from '../limits/oauth.ts'
import { hashToken } from '../opaque-tokens.ts'

/** A person who is signed in to this server's pages in a browser. */
export interface WebSession {
  readonly userNid: number
  readonly userId: UserId
  readonly isLocked: boolean
  readonly isSuspended: boolean
  /** Whether they proved who they are a short time ago, as what cannot be undone needs. */
  readonly isRecent: boolean
  /** When they did. */
  readonly provenAt: number
}

/** What a browser is signed in to. The secret of one place opens no other. */
export type WebPlace = 'account' | 'console'

/** Sessions of browsers on the pages of this server. Apps have sessions of their own; these give no access to the client API. */
export interface WebSessions {
  /** A secret for a browser in which nobody is signed in. */
  newSecret(): string
  /** Signs a browser in, and gives the secret for its cookie. `provenAt`: when its person proved who they are; now, unless it is given. */
  signIn(userNid: number, place?: WebPlace, provenAt?: number): Promise<string>
  /** Signs in the owner of an account that was just made. */
  signInAs(userId: UserId): Promise<string>
  /**
   * Signs in somebody who proved elsewhere who they are, at `provenAt`: undefined counts as long ago.
   * @throws ProtocolError `M_USER_DEACTIVATED`, `M_USER_LOCKED`
   */
  signInByProof(userId: UserId, provenAt: number | undefined): Promise<string>
  /** @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED`, `M_LIMIT_EXCEEDED` */
  signInByPassword(name: string, password: string, address: string): Promise<string>
  /** Consumes a login token. It says when its person proved who they are: else that counts as long ago. @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED` */
  signInByToken(token: string): Promise<string>
  find(secret: string | undefined, place?: WebPlace): Promise<WebSession | undefined>
  /** Notes when the person in a browser proved again who they are; an earlier moment changes nothing. */
  prove(secret: string, place: WebPlace, provenAt: number): Promise<void>
  /**
   * Has the person in a browser prove again by their password who they are.
   * @throws ProtocolError `M_FORBIDDEN`, `M_USER_DEACTIVATED`, `M_USER_LOCKED`, `M_LIMIT_EXCEEDED`
   */
  proveByPassword(
    secret: string,
    place: WebPlace,
    proof: { readonly password: string; readonly address: string },
  ): Promise<void>
  /** Keeps this browser signed in although its user has just changed the password. */
  keep(secret: string): Promise<void>
  signOut(secret: string, place?: WebPlace): Promise<void>
  signOutAll(userNid: number): Promise<void>
}

const SECRET_BYTES = 32
const SECRET = /^[\w-]{43}$/
const TOUCH_EVERY_MS = 60_000
const LONG_AGO = 0

export function createWebSessions(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly logins: Pick<Logins, 'authenticate'>
  readonly loginTokens: Pick<LoginTokens, 'redeem'>
}): WebSessions {
  const { db, clock, random, logins, loginTokens } = deps
  const newSecret = (): string => random.bytes(SECRET_BYTES).toString('base64url')

  const hashOf = (secret: string, place: WebPlace) => hashToken(place === 'account' ? secret : `${place} ${secret}`)

  async function begin(tx: Tx, userNid: number, provenAt = clock.now(), place: WebPlace = 'account'): Promise<string> {
    const secret = newSecret()
    const session = { hash: hashOf(secret, place), userNid, provenAt, now: clock.now() }
    await insertWebSession(tx, session, MAX_WEB_SESSIONS_PER_USER)
    return secret
  }

  async function find(secret: string | undefined, place: WebPlace = 'account'): Promise<WebSession | undefined> {
    if (secret === undefined || !SECRET.test(secret)) return undefined
    const now = clock.now()
    const hash = hashOf(secret, place)
    const since = { usedAt: now - WEB_SESSION_IDLE_MS, createdAt: now - WEB_SESSION_MS }
    const row = await findWebSession(db, hash, since)
    if (row === undefined) return undefined
    if (now - row.used_at > TOUCH_EVERY_MS) await db.tx((tx) => touchWebSession(tx, hash, now))
    return {
      userNid: row.user_nid,
      userId: row.user_id,
      isLocked: row.is_locked,
      isSuspended: row.is_suspended,
      isRecent: now - row.proven_at <= RECENT_PROOF_MS,
      provenAt: row.proven_at,
    }
  }

  const prove = (secret: string, place: WebPlace, provenAt: number) =>
    db.tx((tx) => proveWebSession(tx, hashOf(secret, place), provenAt))

  async function nidOf(userId: UserId): Promise<number> {
    const userNid = (await findUserNids(db, [userId])).get(userId)
    if (userNid === undefined) throw new Error('an account without a user')
    return userNid
  }

  return {
    newSecret,
    find,
    prove,
    signIn: (userNid, place, provenAt) => db.tx((tx) => begin(tx, userNid, provenAt, place)),
    async signInAs(userId) {
      const userNid = await nidOf(userId)
      return db.tx((tx) => begin(tx, userNid))
    },
    async signInByProof(userId, provenAt = LONG_AGO) {
      const userNid = await nidOf(userId)
      return db.tx(async (tx) => {
        const account = await lockAccount(tx, userNid)
        if (account === undefined || account.deactivated_at !== null) {
          throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
        }
        if (account.is_locked) throw accountLocked()
        return begin(tx, userNid, provenAt)
      })
    },
    async signInByPassword(name, password, address) {
      const { userNid, passwordHash } = await logins.authenticate(name, password, address)
      return db.tx(async (tx) => {
        const account = await lockAccount(tx, userNid)
        if (account?.password_hash !== passwordHash) {
          throw new ProtocolError('M_FORBIDDEN', 'The password has just been changed. Sign in with the new one.')
        }
        return begin(tx, userNid)
      })
    },
    signInByToken: (token) =>
      db.tx(async (tx) => {
        const { userNid, provenAt = LONG_AGO } = await loginTokens.redeem(tx, token)
        return begin(tx, userNid, provenAt)
      }),
    async proveByPassword(secret, place, { password, address }) {
      const session = await find(secret, place)
      if (session === undefined) throw new ProtocolError('M_FORBIDDEN', 'This session has ended. Sign in again.')
      const { userNid } = await logins.authenticate(session.userId, password, address)
      // A directory of the operator may know this name as another person's.
      if (userNid !== session.userNid)
        throw new ProtocolError('M_FORBIDDEN', 'This is the password of another account.')
      await prove(secret, place, clock.now())
    },
    keep: (secret) => db.tx((tx) => restampWebSession(tx, hashToken(secret))),
    signOut: (secret, place = 'account') => db.tx((tx) => deleteWebSession(tx, hashOf(secret, place))),
    signOutAll: (userNid) => db.tx((tx) => deleteWebSessionsOf(tx, userNid)),
  }
}
