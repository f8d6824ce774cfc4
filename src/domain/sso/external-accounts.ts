import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isNewLocalpart, userId } from '../../core/ids.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { type ExternalAccountRow, findExternalAccount, insertExternalId } from '../../store/accounts/external-ids.ts'
import { changeProfile } from '../../store/accounts/profiles.ts'
import { insertUserThreepid } from '../../store/accounts/user-threepids.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { insertUser } from '../accounts/insert-user.ts'
import type { Registration } from '../accounts/registration.ts'
import { requireRoomForUser } from '../accounts/user-cap.ts'
import type { Clock } from '../clock.ts'
import { SignInFailure } from './failure.ts'
import type { Person } from './flows.ts'

/** Links people at a provider to accounts of this server. */
export interface ExternalAccounts {
  find(providerId: string, subject: string): Promise<ExternalAccountRow | undefined>
  /**
   * Links a person to the account with this user name; undefined if there is none, or it is a guest's.
   * @throws SignInFailure `deactivated`
   */
  adopt(providerId: string, subject: string, localpart: string): Promise<ExternalAccountRow | undefined>
  /**
   * Makes an account for a person. `meanwhile` runs first, in the same transaction.
   * @throws ProtocolError `M_INVALID_USERNAME`, `M_USER_IN_USE`, `M_EXCLUSIVE`, `M_FORBIDDEN`; SignInFailure `full`
   */
  create(
    providerId: string,
    person: Person,
    username: string,
    meanwhile?: (tx: Tx) => Promise<void>,
  ): Promise<ExternalAccountRow>
}

export function createExternalAccounts(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly registration: Pick<Registration, 'checkNew' | 'settle'>
  readonly config: Pick<Config, 'server_name' | 'registration' | 'well_known'>
}): ExternalAccounts {
  const { db, clock, registration, config } = deps

  async function link(tx: Tx, provider: string, subject: string, userNid: number): Promise<void> {
    const isLinked = await insertExternalId(tx, { provider, subject, userNid, createdAt: clock.now() })
    // The person signed in twice at once, and the other sign-in has made the account.
    if (!isLinked) throw new SignInFailure('ended')
  }

  /** The address that the provider vouches for. */
  function verified({ email }: Person) {
    return email === undefined ? undefined : { address: email, validatedAt: clock.now() }
  }

  async function requireRoom(tx: Tx): Promise<void> {
    try {
      await requireRoomForUser(tx, config)
    } catch (error) {
      throw error instanceof ProtocolError ? new SignInFailure('full') : error
    }
  }

  return {
    find: (providerId, subject) => findExternalAccount(db, providerId, subject),

    async adopt(providerId, subject, localpart) {
      if (!isNewLocalpart(localpart, config.server_name)) return undefined
      const account = await findAccount(db, userId(localpart, config.server_name))
      if (account === undefined || account.is_guest) return undefined
      if (account.deactivated_at !== null) throw new SignInFailure('deactivated')
      await db.tx((tx) => link(tx, providerId, subject, account.user_nid))
      return account
    },

    async create(providerId, person, username, meanwhile) {
      const id = await registration.checkNew(username, { provider: providerId, email: verified(person) })
      return db.tx(async (tx) => {
        await requireRoom(tx)
        await meanwhile?.(tx)
        const user = { passwordHash: undefined, isGuest: false, isAdmin: false }
        const userNid = await insertUser(tx, clock, id, user)
        await link(tx, providerId, person.subject, userNid)
        await describe(tx, userNid, person)
        await registration.settle(tx, userNid)
        return { user_nid: userNid, user_id: id, deactivated_at: null }
      })
    },
  }

  async function describe(tx: Tx, userNid: number, { displayName, email }: Person): Promise<void> {
    if (displayName !== undefined) await changeProfile(tx, userNid, { displayname: displayName })
    if (email === undefined) return
    const now = clock.now()
    // An address that another account has stays with that account.
    await insertUserThreepid(tx, userNid, { medium: 'email', address: email, validated_at: now, added_at: now }, 1)
  }
}
