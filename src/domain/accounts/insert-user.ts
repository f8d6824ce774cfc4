import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import { findAccount, insertAccount } from '../../store/accounts/accounts.ts'
import { internUsers } from '../../store/accounts/users.ts'
import type { Reader, Tx } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { enterLocalUsers } from '../user-directory/local-entries.ts'

/** What kind of account to make. */
export interface NewUser {
  /** A PHC string; undefined for an account without a password. */
  readonly passwordHash: string | undefined
  readonly isGuest: boolean
  readonly isAdmin: boolean
  /** The application service that the user belongs to. */
  readonly appserviceId?: string
}

function inUse(): ProtocolError {
  return new ProtocolError('M_USER_IN_USE', 'This user name is taken.')
}

/** @throws ProtocolError `M_USER_IN_USE` */
export async function requireFree(reader: Reader, id: UserId): Promise<void> {
  if ((await findAccount(reader, id)) !== undefined) throw inUse()
}

/** Makes the account of a local user and returns its numeric id. @throws ProtocolError `M_USER_IN_USE` */
export async function insertUser(tx: Tx, clock: Clock, id: UserId, user: NewUser): Promise<number> {
  const userNid = (await internUsers(tx, [id])).get(id) as number
  if (!(await insertAccount(tx, { ...user, userNid, createdAt: clock.now() }))) throw inUse()
  await enterLocalUsers(tx, [userNid])
  return userNid
}
