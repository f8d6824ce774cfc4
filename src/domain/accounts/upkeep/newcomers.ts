import type { Logger } from 'pino'
import type { Config } from '../../../config/schema.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { isRoomAlias, localpartOf, type RoomAlias, serverOf, userId } from '../../../core/ids.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import { findAccount } from '../../../store/accounts/accounts.ts'
import {
  claimNewcomers,
  deleteNewcomer,
  type NewcomerRow,
  postponeNewcomer,
} from '../../../store/accounts/newcomers.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'
import type { Aliases, AliasTarget } from '../../rooms/act/aliases.ts'
import type { Rooms } from '../../rooms/act/rooms.ts'
import type { Requester } from '../requester.ts'

/**
 * Leads new accounts into the rooms that `registration.auto_join` names, once they may enter: by a row for each, so that a restart leaves
 * nobody out. Rooms that are missing here are made, and newcomers invited, by the user whom the configuration names for it.
 */
export interface Newcomers {
  /** Leads those who are due. Returns how many there were. One for whom a room cannot be reached is due again later. */
  continueDue(): Promise<number>
}

const AT_ONCE = 20
const LEASE_MS = 300_000
const FIRST_PAUSE_MS = 10_000
const LONGEST_PAUSE_MS = 3_600_000
const MAX_ATTEMPTS = 20
/** Newcomers who wait for an operator's approval are looked at again after this time; the approval makes them due at once. */
const WAITING_MS = 600_000

export function createNewcomers(deps: {
  readonly config: Pick<Config, 'server_name' | 'registration'>
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly rooms: Pick<Rooms, 'join' | 'invite' | 'create'>
  readonly aliases: Pick<Aliases, 'targetOf'>
}): Newcomers {
  const { config, db, clock, log, rooms, aliases } = deps
  const { rooms: wanted, guests, host } = config.registration.auto_join
  const making = createKeyedQueue<string>()

  async function hostOf(): Promise<Requester | undefined> {
    if (host === undefined) return undefined
    const account = await findAccount(db, userId(host, config.server_name))
    if (account !== undefined && account.deactivated_at === null) return requesterOf(account)
    log.warn(
      { host },
      'the user of `registration.auto_join.host` does not exist, so no room is made and nobody invited',
    )
    return undefined
  }

  /** The room of a name. One that is missing here is made, once, however many come at once. */
  function targetOf(name: string): Promise<AliasTarget> {
    return making.run(name, async () => {
      try {
        return await aliases.targetOf(name)
      } catch (error) {
        const isMissing = error instanceof ProtocolError && error.errcode === 'M_NOT_FOUND'
        if (!isMissing || !isRoomAlias(name) || serverOf(name) !== config.server_name) throw error
        const by = await hostOf()
        if (!by) throw error
        await rooms.create(
          by,
          { room_alias_name: localpartOf(name), preset: 'public_chat', name: titleOf(name) },
          undefined,
        )
        return aliases.targetOf(name)
      }
    })
  }

  async function lead(newcomer: Requester, name: string): Promise<void> {
    const { room_id: roomId, servers } = await targetOf(name)
    try {
      await rooms.join(newcomer, roomId, { via: servers })
    } catch (error) {
      const by = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN' ? await hostOf() : undefined
      if (!by) throw error
      await rooms.invite(by, roomId, newcomer.userId, {})
      await rooms.join(newcomer, roomId, { via: servers })
    }
  }

  /** Whether all that can be done is done. */
  async function leadIntoAll(row: NewcomerRow): Promise<boolean> {
    let isDone = true
    for (const name of wanted) {
      try {
        await lead(requesterOf(row), name)
      } catch (err) {
        const isFinal = err instanceof ProtocolError && err.status < 500 && err.errcode !== 'M_LIMIT_EXCEEDED'
        isDone &&= isFinal
        const reason = err instanceof Error ? err.message : String(err)
        log.warn({ user: row.user_id, room: name, reason }, 'a newcomer could not be led into a room')
      }
    }
    return isDone
  }

  async function take(row: NewcomerRow): Promise<void> {
    const { user_nid: nid, attempts } = row
    if (row.awaits_approval && !row.is_shut) {
      return db.tx((tx) => postponeNewcomer(tx, nid, clock.now() + WAITING_MS, attempts - 1))
    }
    // They are led when they are let in again.
    if (row.is_locked && !row.is_shut) {
      return db.tx((tx) => postponeNewcomer(tx, nid, clock.now() + LONGEST_PAUSE_MS, attempts - 1))
    }
    const isOver = row.is_shut || (row.is_guest && !guests)
    if (isOver || (await leadIntoAll(row)) || attempts >= MAX_ATTEMPTS) return db.tx((tx) => deleteNewcomer(tx, nid))
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), LONGEST_PAUSE_MS)
    await db.tx((tx) => postponeNewcomer(tx, nid, clock.now() + pause, attempts))
  }

  return {
    async continueDue() {
      const now = clock.now()
      const due = await db.tx((tx) => claimNewcomers(tx, now, now + LEASE_MS, AT_ONCE))
      // A room of a server that does not answer holds up nobody else.
      await Promise.all(due.map(take))
      return due.length
    },
  }
}

/** Somebody who acts without a device of theirs. */
function requesterOf(of: Pick<NewcomerRow, 'user_id' | 'user_nid' | 'is_guest'>): Requester {
  return { userId: of.user_id, userNid: of.user_nid, deviceId: '', tokenNid: 0, isGuest: of.is_guest }
}

/** `#town-hall:example.org` is called Town hall. */
function titleOf(alias: RoomAlias): string {
  const words = localpartOf(alias).replace(/[-_.]+/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
