import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Config } from '../../config/schema.ts'
import { membershipOf } from '../../core/event/content.ts'
import { isUserId, type UserId, userId } from '../../core/ids.ts'
import { isObject } from '../../core/json.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import { listBansAfter, type Present, presentWith } from '../../store/rooms/list-bans.ts'
import type { Requester } from '../accounts/requester.ts'
import { onBehalfOf } from '../admin/local-account.ts'
import { LIST_BANS_READ_AT_ONCE, MAX_FRESH_MEMBERS } from '../limits/moderation.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { SearchSignals } from '../search/search-signals.ts'
import { restAfterWork } from '../spare-time.ts'
import { createListBanActs, type ListBanActParts, PRESENT } from './list-ban-acts.ts'
import type { PolicyLists } from './policy-lists.ts'

/**
 * Bans those whom policy lists ban from the rooms in which the user of `moderation.ban_as` is and may ban, in that user's name, and ends
 * these bans with their rules. Administrators of this server are never banned, nor is who has as much power in the room. Each act is in the
 * record.
 */
export interface ListBans {
  /** Does what is due. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** Calls the listener when there is something to do. */
  onWake(listener: () => void): void
}

const START = { room_nid: 0, user_nid: 0 }
/** Comparing names with many rules takes long: others have their turn in between. */
const LONGEST_TURN_MS = 10
const NEVER = new AbortController().signal

export interface ListBanParts extends ListBanActParts {
  readonly config: Pick<Config, 'server_name' | 'moderation'>
  readonly lists: Pick<PolicyLists, 'bans' | 'areAllInForce' | 'onChange'>
  readonly signals: Pick<SearchSignals, 'subscribe'>
}

export function createListBans(parts: ListBanParts): ListBans | undefined {
  const { config, db, log, lists } = parts
  const localpart = config.moderation.ban_as
  if (localpart === undefined) return undefined
  const name = userId(localpart, config.server_name)
  const acts = createListBanActs(parts)
  let wake = (): void => {}
  /** Whether all members are to be looked at. */
  let isAnew = true
  /** Whether the log says that the moderator is not there. */
  let isMissed = false
  /** Who has come into a room since, by room and name. */
  let came = new Map<string, Pick<Present, 'room_nid' | 'user_id'>>()

  lists.onChange(() => {
    isAnew = true
    wake()
  })
  parts.signals.subscribe({
    committed(fresh) {
      const bans = lists.bans()
      if (bans === undefined) return
      for (const event of fresh) {
        if (givesRoom(event, name)) {
          isAnew = true
          // Others set the power of people, too, as often as they like: that is looked at by and by.
          if (event.type === 'm.room.member') wake()
        }
        const one = newMember(event)
        if (one === undefined || acts.ruleOf(bans, one.user_id) === undefined) continue
        came.set(`${one.room_nid} ${one.user_id}`, one)
        wake()
      }
      if (came.size <= MAX_FRESH_MEMBERS) return
      came.clear()
      isAnew = true
    },
    missed() {
      isAnew = true
    },
  })

  async function moderator(): Promise<Requester | undefined> {
    const account = await findAccount(db, name)
    const isThere = account !== undefined && account.deactivated_at === null
    if (isThere) {
      isMissed = false
      return onBehalfOf(account)
    }
    if (isMissed) return undefined
    isMissed = true
    log.warn({ user: name }, 'the user of `moderation.ban_as` does not exist, so policy lists put nobody out of rooms')
    return undefined
  }

  async function takeCome(by: Requester, isOver: () => boolean): Promise<void> {
    const some = [...came.values()]
    came = new Map()
    const nids = await findUserNids(
      db,
      some.map(({ user_id }) => user_id),
    )
    for (const { room_nid, user_id } of some) {
      const user_nid = nids.get(user_id)
      const bans = lists.bans()
      const rule = bans && acts.ruleOf(bans, user_id)
      if (isOver() || user_nid === undefined || rule === undefined) continue
      const [one] = await presentWith(db.bulk, by.userNid, { room_nid, user_nid: user_nid - 1 }, 1)
      if (one?.room_nid !== room_nid || one.user_nid !== user_nid) continue
      if (await acts.ban(by, one, rule)) continue
      isAnew = true
      return
    }
  }

  async function takeAll(by: Requester, isOver: () => boolean): Promise<void> {
    isAnew = false
    const reader = db.bulk
    let isDone = await each(
      (after) => listBansAfter(reader, after, LIST_BANS_READ_AT_ONCE),
      isOver,
      async (one) => {
        const bans = lists.bans()
        // A list that is held for a while ends no bans, also if that begins just now.
        if (lists.areAllInForce() && !(bans && acts.ruleOf(bans, one.user_id))) await acts.unban(by, one)
        return true
      },
    )
    isDone &&= await each(
      (after) => presentWith(reader, by.userNid, after, LIST_BANS_READ_AT_ONCE),
      isOver,
      async (one) => {
        const bans = lists.bans()
        const rule = bans && acts.ruleOf(bans, one.user_id)
        return rule === undefined || (await acts.ban(by, one, rule))
      },
    )
    isAnew ||= !isDone
  }

  return {
    async runAll(isOver) {
      if (!isAnew && came.size === 0) return
      const by = await moderator()
      if (by === undefined) return
      try {
        if (isAnew) await takeAll(by, isOver)
        await takeCome(by, isOver)
      } catch (error) {
        isAnew = true
        throw error
      }
    },
    onWake(listener) {
      wake = listener
    },
  }
}

/** Looks at all of a list, a page at a time. */
async function each<T extends Present>(
  read: (after: typeof START) => Promise<T[]>,
  isOver: () => boolean,
  work: (one: T) => Promise<boolean>,
): Promise<boolean> {
  for (let after = START; ; ) {
    const begun = performance.now()
    const page = await read(after)
    let turnBegun = performance.now()
    for (const one of page) {
      if (isOver() || !(await work(one))) return false
      if (performance.now() - turnBegun < LONGEST_TURN_MS) continue
      await nextTurn()
      turnBegun = performance.now()
    }
    const last = page.at(-1)
    if (last === undefined || page.length < LIST_BANS_READ_AT_ONCE) return true
    after = last
    await restAfterWork(performance.now() - begun, NEVER)
  }
}

/** Whether by this event a room may be one that a user guards from now on, with all who are in it. */
export function givesRoom(event: RoomEvent, moderator: UserId): boolean {
  const { type, pdu } = event
  if (type === 'm.room.member') return pdu.state_key === moderator && membershipOf(event) === 'join'
  return type === 'm.room.power_levels' && isObject(pdu.content.users) && Object.hasOwn(pdu.content.users, moderator)
}

function newMember(event: RoomEvent): Pick<Present, 'room_nid' | 'user_id'> | undefined {
  if (event.type !== 'm.room.member') return undefined
  const target = event.pdu.state_key
  if (!isUserId(target) || !PRESENT.has(membershipOf(event))) return undefined
  return { room_nid: event.roomNid, user_id: target }
}
