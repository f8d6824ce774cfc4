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
  /** Whether that is because the member ignores the sender. Then it is not kept for each member, but once. */
  readonly isIgnored: boolean
}

/** A local member whose rules differ in this room from the default ones. */
interface OwnReader {
  readonly userId: UserId
  readonly displayName: string | undefined
  readonly rules: RoomRules
}

/** A local member who ignores somebody. */
interface Ignorer {
  readonly userNid: number
  readonly ignored: ReadonlySet<string>
  /** Whether messages count for the member at all. */
  readonly countsMessages: boolean
}

interface OwnReaders {
  /** What they were made from. */
  readonly members: object
  readonly version: number
  readonly byNid: ReadonlyMap<number, OwnReader>
  readonly ignorers: readonly Ignorer[]
  readonly bytes: number
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
/** Bytes of an id in a list of ignored users. The budget may drop the list elsewhere while it is used here. */
const IGNORED_BYTES = 120

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
    bytesOf: ({ bytes }) => bytes,
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

  function readersOf(room: Room): OwnReaders {
    const members = room.mentionables()
    const version = pushRules.version()
    const known = readers.get(room.nid)
    if (known && known.members === members && known.version === version) return known
    const byNid = new Map<number, OwnReader>()
    const ignorers: Ignorer[] = []
    let bytes = READERS_BYTES
    const missing: number[] = []
    for (const { userNid, userId, displayName } of room.localMembers.values()) {
      if (!pushRules.hasOwn(userNid)) continue
      const rules = rulesOf(userNid)?.inRoom(room.id)
      if (!rules) {
        missing.push(userNid)
        continue
      }
      const { ignored, countsMessages } = rules
      if (rules.standing !== 'default') {
        byNid.set(userNid, { userId, displayName, rules })
        bytes += READER_BYTES
      }
      if (ignored) {
        ignorers.push({ userNid, ignored, countsMessages })
        bytes += READER_BYTES + ignored.size * IGNORED_BYTES
      }
    }
    if (missing.length > 0) throw new NeedsRules(missing)
    if (fresh.rules.size > 0) for (const userNid of room.localMembers.keys()) fresh.rules.delete(userNid)
    const made = { members, version, byNid, ignorers, bytes }
    readers.set(room.nid, made)
    return made
  }

  return {
    load,
    threadOf: threadFollowers.threadOf,
    of(room, event, state, thread) {
      const { userIds, nids } = room.mentionables()
      const { byNid: own, ignorers } = readersOf(room)
      const { senderPower, powerToNotify } = powersOf(room, event.sender, state)
      const found: Noticed[] = []
      const deaf = ignorers.length === 0 ? undefined : ignoring(event, ignorers, found)
      const outstanding = standsOutFor(event.pdu, userIds, senderPower >= powerToNotify('room'))
      const { highlights } = outstanding
      for (const userId of outstanding.userIds) {
        const userNid = nids.get(userId)!
        if (own.has(userNid) || deaf?.has(userNid)) continue
        found.push({ userNid, notifies: true, highlights, isIgnored: false })
      }
      if (own.size === 0) return found
      const counts = isNotifiable(event.pdu)
      const pushed = new PushedEvent(event.pdu, { roomId: room.id, eventId: event.id })
      for (const [userNid, { userId, displayName, rules }] of own) {
        if (rules.standing === 'silent' || deaf?.has(userNid)) continue
        const facts = { userId, displayName, memberCount: room.counts.join, senderPower, powerToNotify }
        const { notify, highlight } = rules.evaluate(pushed, { ...facts, follows: thread?.followers.has(userNid) })
        if (userId === event.sender || (!highlight && notify === (counts && rules.countsMessages))) continue
        found.push({ userNid, notifies: notify, highlights: highlight, isIgnored: false })
      }
      return found
    },
  }
}

/** The members who ignore an event's sender, if any do. Adds those to `found` for whom it would count otherwise. */
function ignoring(event: RoomEvent, ignorers: readonly Ignorer[], found: Noticed[]): ReadonlySet<number> | undefined {
  let deaf: Set<number> | undefined
  for (const { userNid, ignored, countsMessages } of ignorers) {
    if (!ignored.has(event.sender)) continue
    deaf ??= new Set()
    deaf.add(userNid)
    if (countsMessages && isNotifiable(event.pdu)) {
      found.push({ userNid, notifies: false, highlights: false, isIgnored: true })
    }
  }
  return deaf
}
