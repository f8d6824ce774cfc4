import { ProtocolError } from '../../core/errors.ts'
import { type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { type AccountRow, findAccount } from '../../store/accounts/accounts.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'

/** @throws ProtocolError `M_INVALID_PARAM` for a remote user */
export function requireLocal(userId: UserId, server: ServerName): void {
  if (serverOf(userId) === server) return
  throw new ProtocolError('M_INVALID_PARAM', `${userId} is not a user of this server.`)
}

/** @throws ProtocolError `M_INVALID_PARAM` for a remote user, `M_NOT_FOUND` if there is no account */
export async function localAccount(reader: Reader, userId: UserId, server: ServerName): Promise<AccountRow> {
  requireLocal(userId, server)
  const account = await findAccount(reader, userId)
  if (account !== undefined) return account
  throw new ProtocolError('M_NOT_FOUND', `There is no account ${userId}.`)
}

/** @throws ProtocolError as `localAccount`, and `M_USER_DEACTIVATED` */
export async function activeAccount(reader: Reader, userId: UserId, server: ServerName): Promise<AccountRow> {
  const account = await localAccount(reader, userId, server)
  if (account.deactivated_at === null) return account
  throw deactivated(userId)
}

export function deactivated(userId: UserId): ProtocolError {
  const how = `PUT /_synapse/admin/v2/users/${userId} with "deactivated": false and a "password" opens it again`
  const error = `The account ${userId} is deactivated (${how}).`
  return new ProtocolError('M_USER_DEACTIVATED', error)
}

/** A user on whose behalf the server acts without a login. */
export function onBehalfOf({ user_id, user_nid }: Pick<AccountRow, 'user_id' | 'user_nid'>): Requester {
  return { userId: user_id, userNid: user_nid, deviceId: '', tokenNid: 0, isGuest: false }
}
