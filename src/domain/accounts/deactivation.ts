import type { Logger } from 'pino'
import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { lockAccount } from '../../store/accounts/accounts.ts'
import {
  claimDeactivations,
  type DeactivationRow,
  endAccount,
  eraseAccount,
  finishDeactivation,
  insertDeactivation,
  isDeactivationDue,
  isEnded,
  postponeDeactivation,
  reopenAccount,
} from '../../store/accounts/deactivations.ts'
import { deleteLoginTokensOf } from '../../store/accounts/login-tokens.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { deleteKeyBackups } from '../../store/keys/key-backups.ts'
import { endArchive } from '../../store/oauth/archives.ts'
import { deleteDelayedEventsOf } from '../../store/rooms/delayed-events.ts'
import { getMemberships, getRooms } from '../../store/rooms/rooms.ts'
import type { Clock } from '../clock.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { UnbindResult } from '../contact/identity-server.ts'
import type { IdentityAccounts } from '../identity/accounts.ts'
import type { CrossSigning } from '../keys/cross-signing.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import { enterLocalUsers } from '../user-directory/local-entries.ts'
import type { Devices } from './devices.ts'
import type { Requester } from './requester.ts'

/** The user whose account is deactivated. */
export type EndingUser = Pick<Requester, 'userNid' | 'userId'>

/** Deactivates accounts (client-server API, "Account deactivation"). A row records what is left to do, so that it survives restarts. */
export interface Deactivation {
  /**
   * Deactivates an account at once: nobody can log in to it or act for it any more, and nobody else can take its name. A worker leaves
   * its rooms and rejects its invitations a little later. A second call changes nothing, except that it may erase the user.
   * @param wish `meanwhile` runs first, in the transaction that ends the account
   * @returns whether all addresses that had been bound were unbound
   */
  deactivate(
    user: EndingUser,
    wish: {
      readonly erase: boolean
      readonly idServer: string | undefined
      readonly meanwhile?: (tx: Tx) => Promise<void>
    },
  ): Promise<UnbindResult>
  /**
   * Opens a deactivated account again, with this password and without the rooms, devices and addresses that it had. An erasure ends too:
   * everybody may read again what the user wrote. It changes nothing of an account that is not deactivated.
   * @returns whether it was this call that opened it
   * @throws ProtocolError 409 `M_UNKNOWN` while the deactivation is not finished
   */
  reactivate(user: EndingUser, passwordHash: string): Promise<boolean>
  /** Continues the deactivations that are due and returns how many there were. One that fails is due again later. */
  continueDue(): Promise<number>
  /** Calls the listener whenever a deactivation becomes due. */
  onWake(listener: () => void): void
}

const AT_ONCE = 5
/** A process may die after it took a deactivation. Another one may take it after this time. */
const LEASE_MS = 120_000
const FIRST_PAUSE_MS = 10_000
const LONGEST_PAUSE_MS = 3_600_000
const MAX_ATTEMPTS = 50
const STILL_THERE = new Set(['join', 'invite', 'knock'])

function stillEnding(userId: UserId): ProtocolError {
  const error = `${userId} is still leaving rooms since the account was deactivated. Try again in a minute.`
  return new ProtocolError('M_UNKNOWN', error, { status: 409 })
}

export function createDeactivation(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly devices: Pick<Devices, 'removeAll'>
  readonly crossSigning: Pick<CrossSigning, 'removeAll'>
  readonly contacts: Pick<Contacts, 'removeAll'>
  readonly identityAccounts: Pick<IdentityAccounts, 'removeAll'>
  readonly erasedUsers: Pick<ErasedUsers, 'add' | 'remove'>
  /** The stream position of events. */
  readonly position: () => number
  readonly rooms: { leave(by: Requester, roomId: RoomId, details: object): Promise<void> }
  readonly log: Logger
}): Deactivation {
  const { db, clock, devices, crossSigning, contacts, identityAccounts, rooms, erasedUsers, log } = deps
  const listeners: (() => void)[] = []
  /** What begins and ends an erasure is noted in memory in the order in which it was committed. */
  const turns = createKeyedQueue<number>()

  /** Everything that must not wait for the rooms. It may run twice. */
  async function cutOff({ userNid, userId }: EndingUser, idServer: string | undefined): Promise<UnbindResult> {
    await devices.removeAll(userNid)
    await crossSigning.removeAll(userNid)
    await identityAccounts.removeAll(userId)
    return contacts.removeAll(userNid, idServer)
  }

  async function leave({ userNid, userId }: EndingUser, roomId: RoomId): Promise<void> {
    try {
      await rooms.leave({ userId, userNid, deviceId: '', tokenNid: 0, isGuest: false }, roomId, {})
    } catch (error) {
      // The room refuses the leave, or does not exist any more: another attempt would change nothing.
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      log.info({ user_id: userId, room_id: roomId, reason: error.message }, 'a deactivated user stays in a room')
    }
  }

  async function leaveRooms(user: EndingUser): Promise<void> {
    const there = (await getMemberships(db, user.userNid)).filter(({ membership }) => STILL_THERE.has(membership))
    const found = await getRooms(
      db,
      there.map(({ room_nid }) => room_nid),
    )
    for (const { room_id } of found) await leave(user, room_id)
  }

  async function windUp({ user_nid, user_id, id_server, attempts }: DeactivationRow): Promise<void> {
    const user = { userNid: user_nid, userId: user_id }
    try {
      await cutOff(user, id_server ?? undefined)
      await leaveRooms(user)
    } catch (error) {
      const isLast = attempts >= MAX_ATTEMPTS
      log.warn(
        { err: error, user_id, attempts },
        isLast ? 'a deactivation was given up' : 'a deactivation goes on later',
      )
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 20), LONGEST_PAUSE_MS)
      await db.tx((tx) =>
        isLast ? finishDeactivation(tx, user_nid) : postponeDeactivation(tx, user_nid, clock.now() + pause),
      )
      return
    }
    await db.tx((tx) => finishDeactivation(tx, user_nid))
  }

  return {
    onWake: (listener) => void listeners.push(listener),
    async deactivate(user, { erase, idServer, meanwhile }) {
      const { userNid } = user
      const now = clock.now()
      await turns.run(userNid, async () => {
        const position = deps.position()
        await db.tx(async (tx) => {
          await meanwhile?.(tx)
          if (await endAccount(tx, userNid, now)) {
            await deleteLoginTokensOf(tx, userNid)
            await deleteKeyBackups(tx, userNid)
            await deleteDelayedEventsOf(tx, userNid)
            await endArchive(tx, userNid, now)
            await insertDeactivation(tx, { userNid, idServer, now, dueAt: now + LEASE_MS })
          }
          if (erase) await eraseAccount(tx, userNid, now, position)
        })
        if (erase) erasedUsers.add(userNid, position)
      })
      const unbound = await cutOff(user, idServer)
      await db.tx((tx) => postponeDeactivation(tx, userNid, clock.now()))
      for (const listener of listeners) listener()
      return unbound
    },
    reactivate: ({ userNid, userId }, passwordHash) =>
      turns.run(userNid, async () => {
        // A deactivation that was given up may have left some: no session from before comes alive again.
        if (await isEnded(db, userNid)) await devices.removeAll(userNid)
        const isOpened = await db.tx(async (tx) => {
          if ((await lockAccount(tx, userNid))?.deactivated_at === null) return false
          if (!(await reopenAccount(tx, userNid, passwordHash))) throw stillEnding(userId)
          await enterLocalUsers(tx, [userNid])
          return true
        })
        if (isOpened) erasedUsers.remove(userNid)
        return isOpened
      }),
    async continueDue() {
      const now = clock.now()
      // Asked every few seconds: a read costs less than a transaction.
      if (!(await isDeactivationDue(db, now))) return 0
      const due = await db.tx((tx) => claimDeactivations(tx, now, now + LEASE_MS, AT_ONCE))
      for (const one of due) await windUp(one)
      return due.length
    },
  }
}
