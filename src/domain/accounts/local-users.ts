import { serverOf, type UserId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { findProfile } from '../../store/accounts/profiles.ts'
import type { AppserviceQueries } from '../appservices/queries.ts'
import type { Base } from '../base.ts'

/** What rooms and other servers ask about users of ours. */
export interface LocalUsers {
  /** The number of a user of ours whose account has not ended. */
  find(userId: UserId): Promise<number | undefined>
  /** Whether a user exists who may be invited, perhaps made by an application service just now; users of other servers do. */
  isKnown(userId: UserId): Promise<boolean>
  /** All fields of a user's profile; none for users of other servers. */
  profileOf(userId: UserId): Promise<Readonly<Record<string, JsonValue>>>
}

export function createLocalUsers(parts: {
  readonly base: Pick<Base, 'config' | 'db'>
  readonly appserviceBase: { readonly queries: Pick<AppserviceQueries, 'findUser'> }
}): LocalUsers {
  const { config, db } = parts.base
  const { queries } = parts.appserviceBase

  async function find(userId: UserId): Promise<number | undefined> {
    const account = await findAccount(db, userId)
    return account && account.deactivated_at === null ? account.user_nid : undefined
  }

  return {
    find,
    isKnown: async (userId) =>
      serverOf(userId) !== config.server_name || (await find(userId)) !== undefined || (await queries.findUser(userId)),
    profileOf: async (userId) => (await findProfile(db, userId)) ?? {},
  }
}
