import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { localpartOf, type UserId } from '../../core/ids.ts'
import { isEmailAddress, type Medium, normaliseAddress } from '../../core/threepid.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { deleteExternalIds, insertExternalId } from '../../store/accounts/external-ids.ts'
import { insertUserThreepid, listUserThreepids } from '../../store/accounts/user-threepids.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { type ExclusiveUsers, requireUnreserved } from '../accounts/exclusive-users.ts'
import { insertUser } from '../accounts/insert-user.ts'
import { newUserId } from '../accounts/new-user-id.ts'
import type { Passwords } from '../accounts/passwords.ts'
import type { Profiles } from '../accounts/profiles.ts'
import type { Requester } from '../accounts/requester.ts'
import { settle } from '../accounts/upkeep/settling.ts'
import type { Clock } from '../clock.ts'
import type { Contacts } from '../contact/contacts.ts'
import { MAX_THREEPIDS_PER_USER } from '../limits.ts'
import { checkText } from '../text.ts'
import { activeAccount, onBehalfOf, requireLocal } from './local-account.ts'
import type { Operator } from './operator.ts'
import type { Restraints } from './restraints.ts'
import type { UserDesk } from './user-desk.ts'

/** The wanted properties of an account; undefined ones stay as they are. */
export interface UserWish {
  readonly password: string | undefined
  readonly logoutDevices: boolean
  /** Empty removes it. */
  readonly displayName: string | undefined
  readonly avatarUrl: string | undefined
  readonly isAdmin: boolean | undefined
  readonly isLocked: boolean | undefined
  /** Whether a deactivated account is opened again; it needs a password then. */
  readonly isReactivated: boolean
  /** Replaces all addresses of the account, which count as proven. */
  readonly threepids: readonly { readonly medium: Medium; readonly address: string }[] | undefined
  readonly externalIds: readonly { readonly auth_provider: string; readonly external_id: string }[] | undefined
}

export interface UserEditing {
  /**
   * Makes or changes an account. Returns whether it was made.
   * @throws ProtocolError `M_INVALID_USERNAME`, `M_EXCLUSIVE`, `M_WEAK_PASSWORD`, `M_THREEPID_IN_USE`, `M_USER_DEACTIVATED`,
   *   `M_INVALID_PARAM`, `M_FORBIDDEN`, `M_MISSING_PARAM` for a deactivated account without a new password; 409 `M_UNKNOWN` for another
   *   account's external id, and for an account whose deactivation is not finished
   */
  put(by: Operator, userId: UserId, wish: UserWish): Promise<boolean>
}

const MAX_EXTERNAL_IDS = 100
const MAX_EXTERNAL_ID_CHARS = 1_000
const PHONE_NUMBER = /^[1-9][0-9]{3,14}$/

export function createUserEditing(deps: {
  readonly config: Pick<Config, 'server_name' | 'registration'>
  readonly db: Database
  readonly clock: Clock
  readonly passwords: Passwords
  readonly profiles: Profiles
  readonly contacts: Pick<Contacts, 'remove'>
  readonly users: Pick<UserDesk, 'setPassword' | 'setAdmin' | 'reactivate'>
  readonly exclusiveUsers: ExclusiveUsers
  readonly restraints: Pick<Restraints, 'set'>
}): UserEditing {
  const { config, db, clock, passwords, profiles, contacts, users, restraints } = deps

  async function make(userId: UserId, { password, isAdmin = false }: UserWish): Promise<void> {
    if (newUserId(localpartOf(userId), config.server_name) !== userId) {
      throw new ProtocolError('M_INVALID_USERNAME', 'The names of new users are in lower case.')
    }
    requireUnreserved(deps.exclusiveUsers, userId)
    const passwordHash = password === undefined ? undefined : await passwords.hash(password)
    await db.tx(async (tx) => {
      await settle(tx, deps, await insertUser(tx, clock, userId, { passwordHash, isGuest: false, isAdmin }), 'made')
    })
  }

  async function replaceExternalIds(tx: Tx, userNid: number, ids: NonNullable<UserWish['externalIds']>) {
    await deleteExternalIds(tx, userNid)
    for (const { auth_provider: provider, external_id: subject } of ids) {
      if (await insertExternalId(tx, { provider, subject, userNid, createdAt: clock.now() })) continue
      throw new ProtocolError('M_UNKNOWN', 'An external id is the one of another account.', { status: 409 })
    }
  }

  async function replaceThreepids(user: Requester, wanted: NonNullable<UserWish['threepids']>): Promise<void> {
    const key = ({ medium, address }: { medium: string; address: string }) => `${medium} ${address}`
    const kept = new Set(wanted.map(key))
    const before = await listUserThreepids(db, user.userNid)
    const now = clock.now()
    await db.tx(async (tx) => {
      for (const { medium, address } of wanted) {
        const row = { medium, address, validated_at: now, added_at: now }
        if (await insertUserThreepid(tx, user.userNid, row, MAX_THREEPIDS_PER_USER + before.length)) continue
        throw new ProtocolError('M_THREEPID_IN_USE', 'An address is the one of another account.')
      }
    })
    for (const old of before) if (!kept.has(key(old))) await contacts.remove(user, old, undefined)
  }

  async function reactivate(userId: UserId, { password }: UserWish): Promise<void> {
    if (password !== undefined) return users.reactivate(userId, password)
    throw new ProtocolError(
      'M_MISSING_PARAM',
      "A deactivated account has no password. Give it one with the key 'password'.",
    )
  }

  return {
    async put(by, userId, wish) {
      requireLocal(userId, config.server_name)
      check(wish)
      if (wish.password !== undefined) passwords.checkNew(wish.password)
      const before = await findAccount(db, userId)
      const isNew = before === undefined
      if (isNew) await make(userId, wish)
      const isClosed = before !== undefined && before.deactivated_at !== null
      if (isClosed && wish.isReactivated) await reactivate(userId, wish)
      const user = onBehalfOf(await activeAccount(db, userId, config.server_name))
      const { externalIds, displayName, avatarUrl } = wish
      if (externalIds !== undefined) await db.tx((tx) => replaceExternalIds(tx, user.userNid, externalIds))
      if (wish.threepids !== undefined) await replaceThreepids(user, wish.threepids.map(canonical))
      if (displayName !== undefined) await profiles.change(user, { displayname: displayName || undefined })
      if (avatarUrl !== undefined) await profiles.change(user, { avatar_url: avatarUrl || undefined })
      if (wish.isLocked !== undefined && (wish.isLocked || !isNew))
        await restraints.set(by, userId, { isLocked: wish.isLocked })
      if (isNew) return true
      if (wish.isAdmin !== undefined) await users.setAdmin(by, userId, wish.isAdmin)
      if (wish.password !== undefined && !isClosed) await users.setPassword(userId, wish.password, wish.logoutDevices)
      return false
    },
  }
}

const canonical = ({ medium, address }: { readonly medium: Medium; readonly address: string }) => ({
  medium,
  address: normaliseAddress(medium, address),
})

/** Runs before anything is changed. */
function check({ threepids = [], externalIds = [] }: UserWish): void {
  if (threepids.length > MAX_THREEPIDS_PER_USER || externalIds.length > MAX_EXTERNAL_IDS) {
    throw new ProtocolError('M_INVALID_PARAM', `An account has at most ${MAX_THREEPIDS_PER_USER} addresses.`)
  }
  for (const { medium, address } of threepids.map(canonical)) {
    if (medium === 'email' ? isEmailAddress(address) : PHONE_NUMBER.test(address)) continue
    throw new ProtocolError('M_INVALID_PARAM', `This is no ${medium === 'email' ? 'email address' : 'phone number'}.`)
  }
  for (const { auth_provider, external_id } of externalIds) {
    checkText('auth_provider', auth_provider, MAX_EXTERNAL_ID_CHARS)
    checkText('external_id', external_id, MAX_EXTERNAL_ID_CHARS)
  }
}
