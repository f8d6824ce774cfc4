import { serverOf, type UserId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { findProfile } from '../../store/accounts/profiles.ts'
import type { AppserviceQueries } from '../appservices/queries.ts'
import type { Base } from '../base.ts'

/** Answers questions of rooms and other servers about local users. */
export interface LocalUsers {
  /** The numeric id of a local user whose account is active. */
  find(userId: UserId): Promise<number | undefined>
  /** Whether a user exists who may be invited. An application service may make a local one just now. Remote users always count. */
  isKnown(userId: UserId): Promise<boolean>
  /** All fields of a local user's profile; none for remote users. */
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
