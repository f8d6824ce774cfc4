import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { type AclPlan, planAcl } from '../../core/event/acl-plan.ts'
import { createContentOf } from '../../core/event/content.ts'
import { userId } from '../../core/ids.ts'
import type { StateMap } from '../../core/state/trie.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import type { Database } from '../../store/db/db.ts'
import { findListAcl, setListAcl } from '../../store/rooms/list-acls.ts'
import { getMemberships } from '../../store/rooms/rooms.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Audit } from '../admin/audit.ts'
import { onBehalfOf } from '../admin/local-account.ts'
import type { Clock } from '../clock.ts'
import { ACL_SETTLE_MS, MAX_LIST_ACL_BYTES, MAX_LIST_ACLS_PER_HOUR } from '../limits/moderation.ts'
import { powerLevelsOf } from '../rooms/room/power.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { Appender } from '../rooms/write/append.ts'
import type { Draft } from '../rooms/write/draft.ts'
import type { SearchSignals } from '../search/search-signals.ts'
import { restAfterWork } from '../spare-time.ts'
import { givesRoom } from './list-bans.ts'
import type { PolicyLists } from './policy-lists.ts'

/**
 * Keeps the servers that policy lists ban in the server ACLs of the rooms in which the user of `moderation.ban_as` is and may set them, in
 * that user's name. All changes of some seconds are one event for each room. What people wrote into an ACL stays, and no ACL keeps this
 * server out. Each act is in the record.
 */
export interface ListAcls {
  /** Does what is due. @param isOver asked between steps */
  runAll(isOver: () => boolean): Promise<void>
  /** How many rooms get a new ACL if these globs of servers are banned too. @param isOver asked between rooms */
  concerned(globs: readonly string[], isOver: () => boolean): Promise<number>
  /** Calls the listener when there is something to do. */
  onWake(listener: () => void): void
}

export interface ListAclParts {
  readonly config: Pick<Config, 'server_name' | 'moderation'>
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly lists: Pick<PolicyLists, 'bannedServers' | 'areAllInForce' | 'onChange'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly appender: Pick<Appender, 'append'>
  readonly signals: Pick<SearchSignals, 'subscribe'>
  readonly audit: Pick<Audit, 'record'>
}

const TYPE = 'm.room.server_acl'
const HOUR_MS = 3_600_000
const NEVER = new AbortController().signal

interface Due {
  readonly room: Room
  /** The globs that its ACL is to deny. */
  readonly wanted: readonly string[]
  readonly earlier: readonly string[]
}

export function createListAcls(parts: ListAclParts): ListAcls | undefined {
  const { config, db, log, lists, registry, appender, audit } = parts
  const { ban_as: localpart, write_acls: isWanted } = config.moderation
  const own = config.server_name
  if (localpart === undefined || !isWanted) return undefined
  const name = userId(localpart, own)
  let wake = (): void => {}
  let isDue = true
  let settling: NodeJS.Timeout | undefined
  const mayWrite = createHourlyCount(parts)

  /** Whoever changes a list mostly changes more of it: that is waited for. */
  function changed(): void {
    isDue = true
    settling ??= setTimeout(() => {
      settling = undefined
      wake()
    }, ACL_SETTLE_MS).unref()
  }

  lists.onChange(changed)
  parts.signals.subscribe({
    committed(fresh) {
      if (fresh.some((event) => givesRoom(event, name))) changed()
    },
    missed: changed,
  })

  /** What a room is to deny, if the moderator may set its ACL and it is to be another. */
  async function dueIn(by: Requester, roomNid: number, banned: readonly string[]): Promise<Due | undefined> {
    const room = await registry.getByNid(roomNid)
    if (!room?.localMembers.has(by.userNid)) return undefined
    const levels = await powerLevelsOf(room)
    if (levels.levelOf(by.userId) < levels.toSend(TYPE, true)) return undefined
    if (!createContentOf(await room.stateEvent('m.room.create', '')).federates) return undefined
    const earlier = await findListAcl(db, roomNid)
    // While rules are not known, none of them has ended.
    const wanted = lists.areAllInForce() ? banned : [...banned, ...earlier]
    const due = { room, wanted, earlier }
    return (await planOf(due, own, room.committed.state)) && due
  }

  /** False when enough was written for this hour. */
  async function write(by: Requester, due: Due): Promise<boolean> {
    const { room, earlier } = due
    if (!mayWrite()) return false
    let added = earlier
    /** Made again if somebody else changes the ACL meanwhile. */
    const plan = async (current: Room): Promise<readonly Draft[]> => {
      const next = await planOf({ ...due, room: current }, own, current.pending.state)
      added = next?.added ?? earlier
      if (next === undefined) return []
      // First, so that whatever happens in between, the end of a rule finds what was added.
      await db.tx((tx) => setListAcl(tx, room.nid, [...new Set([...earlier, ...next.added])]))
      return [{ type: TYPE, stateKey: '', content: next.content, sender: by.userId, senderNid: by.userNid }]
    }
    try {
      const act = 'put what policy lists ban into the server ACL of a room'
      await audit.record({ actor: 'server', act, target: room.id }, () => appender.append(room.id, plan))
      await db.tx((tx) => setListAcl(tx, room.nid, added))
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status >= 500) throw error
      await db.tx((tx) => setListAcl(tx, room.nid, earlier))
      log.info({ room: room.id, reason: error.message }, 'a room refused a server ACL')
    }
    return true
  }

  async function moderator(): Promise<Requester | undefined> {
    const account = await findAccount(db, name)
    return account && account.deactivated_at === null ? onBehalfOf(account) : undefined
  }

  async function roomsOf(by: Requester): Promise<number[]> {
    const rows = await getMemberships(db, by.userNid)
    return rows.flatMap(({ membership, room_nid }) => (membership === 'join' ? [room_nid] : []))
  }

  return {
    async runAll(isOver) {
      if (!isDue || settling !== undefined) return
      isDue = false
      try {
        const by = await moderator()
        if (by === undefined) return
        for (const roomNid of await roomsOf(by)) {
          const begun = performance.now()
          const due = isOver() ? undefined : await dueIn(by, roomNid, lists.bannedServers())
          if (isOver() || (due && !(await write(by, due)))) {
            isDue = true
            return
          }
          await restAfterWork(performance.now() - begun, NEVER)
        }
      } catch (error) {
        isDue = true
        throw error
      }
    },
    async concerned(globs, isOver) {
      const by = await moderator()
      if (by === undefined) return 0
      const banned = [...new Set([...lists.bannedServers(), ...globs])]
      let count = 0
      for (const roomNid of await roomsOf(by)) {
        if (isOver()) break
        if (await dueIn(by, roomNid, banned)) count++
        await nextTurn()
      }
      return count
    },
    onWake(listener) {
      wake = listener
    },
  }
}

/** The room's next ACL, if it is to be another. @param own the name of this server */
async function planOf({ room, wanted, earlier }: Due, own: string, state: StateMap): Promise<AclPlan | undefined> {
  const acl = await room.stateEvent(TYPE, '', state)
  return planAcl(acl?.pdu.content, wanted, earlier, { own, maxBytes: MAX_LIST_ACL_BYTES })
}

/** Whether one more may be written in this hour. */
function createHourlyCount({ clock, log }: Pick<ListAclParts, 'clock' | 'log'>): () => boolean {
  let [hourBegan, inHour] = [Number.NEGATIVE_INFINITY, 0]
  return () => {
    const now = clock.now()
    if (now - hourBegan >= HOUR_MS) [hourBegan, inHour] = [now, 0]
    if (inHour < MAX_LIST_ACLS_PER_HOUR) {
      inHour++
      return true
    }
    log.warn({ atMost: MAX_LIST_ACLS_PER_HOUR }, 'policy lists change no more server ACLs in this hour')
    return false
  }
}
