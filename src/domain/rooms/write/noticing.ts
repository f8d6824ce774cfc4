import type { StateLookup } from '../../../core/auth/context.ts'
import type { ByteBudget } from '../../../core/byte-budget.ts'
import type { UserId } from '../../../core/ids.ts'
import type { CompiledRules, RoomRules } from '../../../core/push/compiled-rules.ts'
import { isNotifiable } from '../../../core/push/default-rules.ts'
import { standsOutFor } from '../../../core/push/highlights.ts'
import { PushedEvent } from '../../../core/push/pushed-event.ts'
import { powersOf } from '../../push/push-context.ts'
import type { PushRules } from '../../push/rules.ts'
import type { EventThread, ThreadFollowers } from '../../push/thread-followers.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { NeedsRules } from './needs.ts'

/** What an event is to one local member, where that is something else than to all. */
export interface Noticed {
  readonly userNid: number
  readonly notifies: boolean
  readonly highlights: boolean
}

/** A local member whose rules differ in this room from the default ones. */
interface OwnReader {
  readonly userId: UserId
  readonly displayName: string | undefined
  readonly rules: RoomRules
}

interface OwnReaders {
  /** What they were made from. */
  readonly members: object
  readonly version: number
  readonly byNid: ReadonlyMap<number, OwnReader>
}

/** Decides for whom of a room an event stands out. */
export interface Noticing extends Pick<ThreadFollowers, 'threadOf'> {
  /**
   * The local members for whom an event is a mention, and those whose own rules make something else of it than the default ones.
   *
   * @param state before the event
   * @param thread that the event is in
   * @throws NeedsRules while rules of members are not in memory
   */
  of(room: Room, event: RoomEvent, state: StateLookup, thread: EventThread | undefined): Noticed[]
  /** Reads rules into memory. */
  load(userNids: readonly number[]): Promise<void>
}

const READERS_BYTES = 200
const READER_BYTES = 600

export function createNoticing({
  pushRules,
  threadFollowers,
  budget,
}: {
  readonly pushRules: PushRules
  readonly threadFollowers: Pick<ThreadFollowers, 'threadOf'>
  readonly budget: ByteBudget
}): Noticing {
  const readers = budget.part<number, OwnReaders>({
    bytesOf: ({ byNid }) => READERS_BYTES + byNid.size * READER_BYTES,
  })

  // What was read for the next try: it must not depend on what the budget keeps.
  let fresh = { version: -1, rules: new Map<number, CompiledRules>() }

  async function load(userNids: readonly number[]): Promise<void> {
    await pushRules.load(userNids)
    const version = pushRules.version()
    const rules = await Promise.all(userNids.map(async (nid) => [nid, await pushRules.of(nid)] as const))
    if (fresh.version !== version) fresh = { version, rules: new Map() }
    if (version === pushRules.version()) for (const [nid, compiled] of rules) fresh.rules.set(nid, compiled)
  }

  function rulesOf(userNid: number): CompiledRules | undefined {
    return pushRules.peek(userNid) ?? (fresh.version === pushRules.version() ? fresh.rules.get(userNid) : undefined)
  }

  function readersOf(room: Room): OwnReaders['byNid'] {
    const members = room.mentionables()
    const version = pushRules.version()
    const known = readers.get(room.nid)
    if (known && known.members === members && known.version === version) return known.byNid
    const byNid = new Map<number, OwnReader>()
    const missing: number[] = []
    for (const { userNid, userId, displayName } of room.localMembers.values()) {
      if (!pushRules.hasOwn(userNid)) continue
      const rules = rulesOf(userNid)?.inRoom(room.id)
      if (!rules) missing.push(userNid)
      else if (rules.standing !== 'default') byNid.set(userNid, { userId, displayName, rules })
    }
    if (missing.length > 0) throw new NeedsRules(missing)
    if (fresh.rules.size > 0) for (const userNid of room.localMembers.keys()) fresh.rules.delete(userNid)
    readers.set(room.nid, { members, version, byNid })
    return byNid
  }

  return {
    load,
    threadOf: threadFollowers.threadOf,
    of(room, event, state, thread) {
      const { userIds, nids } = room.mentionables()
      const own = readersOf(room)
      const { senderPower, powerToNotify } = powersOf(room, event.sender, state)
      const found: Noticed[] = []
      const outstanding = standsOutFor(event.pdu, userIds, senderPower >= powerToNotify('room'))
      const { highlights } = outstanding
      for (const userId of outstanding.userIds) {
        const userNid = nids.get(userId)!
        if (!own.has(userNid)) found.push({ userNid, notifies: true, highlights })
      }
      if (own.size === 0) return found
      const counts = isNotifiable(event.pdu)
      const pushed = new PushedEvent(event.pdu, { roomId: room.id, eventId: event.id })
      for (const [userNid, { userId, displayName, rules }] of own) {
        if (rules.standing === 'silent') continue
        const facts = { userId, displayName, memberCount: room.counts.join, senderPower, powerToNotify }
        const { notify, highlight } = rules.evaluate(pushed, { ...facts, follows: thread?.followers.has(userNid) })
        if (userId === event.sender || (!highlight && notify === (counts && rules.countsMessages))) continue
        found.push({ userNid, notifies: notify, highlights: highlight })
      }
      return found
    },
  }
}
