import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { type ExclusiveUsers, requireUnreserved } from './exclusive-users.ts'
import { insertUser, requireFree } from './insert-user.ts'
import { newUserId } from './new-user-id.ts'
import type { Passwords } from './passwords.ts'
import { settle } from './upkeep/settling.ts'

/**
 * Makes an account for the operator, whether registration is open or not.
 * @throws ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE`, `M_EXCLUSIVE`, `M_WEAK_PASSWORD`
 */
export async function createUser(
  deps: {
    readonly db: Database
    readonly clock: Clock
    readonly passwords: Passwords
    readonly config: Pick<Config, 'server_name' | 'registration'>
    readonly exclusiveUsers: ExclusiveUsers
  },
  user: { readonly username: string; readonly password: string; readonly isAdmin: boolean },
): Promise<UserId> {
  const { db, clock, passwords, config } = deps
  const id = newUserId(user.username, config.server_name)
  requireUnreserved(deps.exclusiveUsers, id)
  await requireFree(db, id)
  passwords.checkNew(user.password)
  const passwordHash = await passwords.hash(user.password)
  await db.tx(async (tx) => {
    await settle(
      tx,
      deps,
      await insertUser(tx, clock, id, { passwordHash, isGuest: false, isAdmin: user.isAdmin }),
      'made',
    )
  })
  return id
}
