import type { StateLookup } from '../../../core/auth/context.ts'
import type { ByteBudget } from '../../../core/byte-budget.ts'
import { displayNameOf } from '../../../core/event/content.ts'
import { contentIn } from '../../../core/event/member-texts.ts'
import type { ServerName, UserId } from '../../../core/ids.ts'
import { isNotifiable, type PushOutcome } from '../../../core/push/default-rules.ts'
import { mentionsRoom, standsOutFor } from '../../../core/push/highlights.ts'
import { type PushContext, PushedEvent } from '../../../core/push/pushed-event.ts'
import { type DefaultsTried, outcomeForUser, type SharedOutcome } from '../../../core/push/shared-outcome.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getMemberEventsOfServer } from '../../../store/rooms/rooms.ts'
import { createOwnReaders, type Deaf, type OwnReader, type RuleGroup } from '../../push/own-readers.ts'
import { type PushPowers, powersOf } from '../../push/push-context.ts'
import type { PushRules } from '../../push/rules.ts'
import type { EventThread, ThreadFollowers } from '../../push/thread-followers.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { NeedsReaders } from './needs.ts'

/** What an event is to one local member, where that is something else than to all. */
export interface Noticed {
  readonly userNid: number
  readonly notifies: boolean
  readonly highlights: boolean
}

/** Whom of a room an event is something else to than to all. */
export interface Notice {
  /** For each of them, a row is kept. */
  readonly noticed: readonly Noticed[]
  /** Members for whom the event would count, if they did not ignore its sender. Nothing is kept: it is found again when it is asked for. */
  readonly deaf: ReadonlySet<number>
}

const NOBODY: ReadonlySet<number> = new Set()
export const NO_NOTICE: Notice = { noticed: [], deaf: NOBODY }

/** Decides for whom of a room an event stands out. */
export interface Noticing extends Pick<ThreadFollowers, 'threadOf'> {
  /**
   * The local members for whom an event is a mention, and those whose own rules make something else of it than the default ones.
   *
   * @param state before the event
   * @param thread that the event is in
   * @throws NeedsReaders while rules or names of members are not in memory
   */
  of(room: Room, event: RoomEvent, state: StateLookup, thread: EventThread | undefined): Notice
}

/** An event while it is tried for the groups of a room. */
interface Trial {
  readonly event: PushedEvent
  /** Of nobody in particular. */
  readonly context: PushContext
  readonly tried: DefaultsTried
  readonly followers: ReadonlySet<number> | undefined
  readonly nids: ReadonlyMap<UserId, number>
  /** Whether it counts for all who have the default rules. */
  readonly counts: boolean
}

export function createNoticing({
  pushRules,
  threadFollowers,
  budget,
  db,
  serverName,
}: {
  readonly pushRules: PushRules
  readonly threadFollowers: Pick<ThreadFollowers, 'threadOf'>
  readonly budget: ByteBudget
  readonly db: Reader
  readonly serverName: ServerName
}): Noticing {
  const ownReaders = createOwnReaders({ pushRules, budget })

  async function readNames(room: Room): Promise<void> {
    const before = new Map(room.localMembers)
    const names = new Map<number, string | undefined>()
    for (const { user_nid, json } of await getMemberEventsOfServer(db, room.nid, serverName))
      names.set(user_nid, displayNameOf({ content: contentIn(json) }))
    room.nameMembers(names, before)
  }

  return {
    threadOf: threadFollowers.threadOf,
    of(room, event, state, thread) {
      const readers = ownReaders.of(room)
      if (!('byNid' in readers)) throw new NeedsReaders(() => ownReaders.load(readers))
      if (room.lacksNames && readers.hasGroups) throw new NeedsReaders(() => readNames(room))
      const { userIds, nids } = room.mentionables()
      const { byNid } = readers
      const powers = () => powersOf(room, event.sender, state)
      const found: Noticed[] = []
      const deaf = readers.deafTo(event.sender)
      const counts = byNid.size > 0 && isNotifiable(event.pdu)
      const outstanding = standsOutFor(event.pdu, userIds, mentionsRoom(event.pdu) && mayNotifyRoom(powers()))
      const { highlights } = outstanding
      for (const userId of outstanding.userIds) {
        const userNid = nids.get(userId)!
        if (byNid.get(userNid)?.isOwn || deaf.all.has(userNid)) continue
        found.push({ userNid, notifies: true, highlights })
      }
      let trial: Trial | undefined
      for (const group of readers.groups) {
        trial ??= {
          event: new PushedEvent(event.pdu, { roomId: room.id, eventId: event.id }),
          context: {
            ...{ userId: '', displayName: undefined, memberCount: room.counts.join },
            ...powers(),
            follows: thread && false,
          },
          ...{ tried: new Map(), followers: thread?.followers, nids, counts },
        }
        noticeGroup(trial, group, deaf, found)
      }
      return { noticed: found, deaf: counts ? deaf.counting : NOBODY }
    },
  }
}

const mayNotifyRoom = ({ senderPower, powerToNotify }: PushPowers): boolean => senderPower >= powerToNotify('room')

/** Adds the readers of a group for whom this event counts differently from other messages. */
function noticeGroup(trial: Trial, { rules, readers }: RuleGroup, deaf: Deaf, found: Noticed[]): void {
  const { event, context, followers } = trial
  const shared = rules.evaluateForAll(event, context, trial.tried)
  const usual = trial.counts && rules.countsMessages
  const isUsual = ({ notify, highlight }: PushOutcome) => !highlight && notify === usual
  const isForMost = !isUsual(shared.outcome)
  if (!isForMost && shared.personal.length === 0) return
  for (const { member } of isForMost ? readers.values() : exceptions(trial, shared, readers)) {
    const { userNid, userId, displayName } = member
    if (userId === event.pdu.sender || deaf.all.has(userNid)) continue
    const outcome =
      shared.personal.length === 0
        ? shared.outcome
        : outcomeForUser(shared, event, { ...context, userId, displayName, follows: followers?.has(userNid) })
    if (isUsual(outcome)) continue
    found.push({ userNid, notifies: outcome.notify, highlights: outcome.highlight })
  }
}

/** The readers for whom the outcome may be another than for most. */
function exceptions({ nids }: Trial, { named }: SharedOutcome, readers: RuleGroup['readers']): Iterable<OwnReader> {
  if (named === undefined) return readers.values()
  const ids = named.length === 1 ? named[0]! : named.flat()
  // Few readers are faster tried than looked up in long lists.
  if (ids.length > readers.size) return readers.values()
  const some = new Set<OwnReader>()
  for (const id of ids) {
    const nid = nids.get(id as UserId)
    const reader = nid === undefined ? undefined : readers.get(nid)
    if (reader) some.add(reader)
  }
  return some
}
