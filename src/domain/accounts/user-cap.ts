import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { countUsers } from '../../store/accounts/accounts.ts'
import type { Tx } from '../../store/db/db.ts'

/**
 * Keeps the number of accounts within `registration.max_users`. Call it before an account is made or reactivated, in the same
 * transaction.
 * @throws ProtocolError `M_RESOURCE_LIMIT_EXCEEDED` with `admin_contact` (client-server API, "Server administration")
 */
export async function requireRoomForUser(tx: Tx, config: Pick<Config, 'registration' | 'well_known'>): Promise<void> {
  const { max_users } = config.registration
  if (max_users === 0 || (await countUsers(tx)) < max_users) return
  const error = 'This server has as many accounts as it may have. Please write to the people who run it.'
  throw new ProtocolError('M_RESOURCE_LIMIT_EXCEEDED', error, {
    extra: { admin_contact: `mailto:${config.well_known.support_email}` },
  })
}
