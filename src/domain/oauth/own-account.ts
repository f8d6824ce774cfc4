import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { type ClientMetadata, hostOf } from '../../core/oauth/client-metadata.ts'
import { hasPassword } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { listSessions, type SessionRow } from '../../store/oauth/sessions.ts'
import type { Logins } from '../accounts/logins.ts'
import type { PasswordChanges } from '../accounts/password-changes.ts'
import type { Requester } from '../accounts/requester.ts'

/** A session as its owner sees it. */
export interface OwnSession {
  readonly deviceId: string
  readonly name: string
  /** The domain of the app, if the session came from OAuth. */
  readonly host: string | undefined
  readonly createdAt: number
  readonly seenAt: number | undefined
  readonly ip: string | undefined
  readonly userAgent: string | undefined
}

/** What people see and change of their own account on the account page. */
export interface OwnAccount {
  sessions(userNid: number): Promise<readonly OwnSession[]>
  hasPassword(userNid: number): Promise<boolean>
  /**
   * Sets a new password for somebody who knows the present one.
   * @throws ProtocolError `M_FORBIDDEN` if it is another one, `M_WEAK_PASSWORD`, `M_LIMIT_EXCEEDED`
   */
  changePassword(
    user: { readonly userNid: number; readonly userId: UserId },
    wish: { readonly present: string; readonly password: string; readonly endsSessions: boolean },
    address: string,
  ): Promise<void>
}

function toSession(row: SessionRow): OwnSession {
  const metadata = row.client === null ? undefined : (JSON.parse(row.client) as ClientMetadata)
  return {
    deviceId: row.device_id,
    name: row.display_name ?? row.device_id,
    host: metadata && hostOf(metadata),
    createdAt: row.created_at,
    seenAt: row.last_seen_at ?? undefined,
    ip: row.last_seen_ip ?? undefined,
    userAgent: row.last_seen_user_agent ?? undefined,
  }
}

/** A person at the account page, as services for sessions know users: without a device. */
export function requesterOf({ userNid, userId }: Pick<Requester, 'userNid' | 'userId'>): Requester {
  return { userNid, userId, deviceId: '', tokenNid: 0, isGuest: false }
}

export function createOwnAccount(deps: {
  readonly db: Database
  readonly logins: Pick<Logins, 'authenticate'>
  readonly passwordChanges: Pick<PasswordChanges, 'change'>
}): OwnAccount {
  const { db, logins, passwordChanges } = deps
  return {
    sessions: async (userNid) => (await listSessions(db, userNid)).map(toSession),
    hasPassword: (userNid) => hasPassword(db, userNid),
    async changePassword(user, { present, password, endsSessions }, address) {
      const { userNid } = await logins.authenticate(user.userId, present, address)
      // A directory of the operator may know this name as another person's.
      if (userNid !== user.userNid) throw new ProtocolError('M_FORBIDDEN', 'This is the password of another account.')
      await passwordChanges.change(requesterOf(user), {}, { password, logoutDevices: endsSessions })
    },
  }
}
