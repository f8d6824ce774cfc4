import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import { isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { SaidEvent } from '../../store/rooms/user-redactions.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import { powerLevelsOf } from '../rooms/room/power.ts'
import type { LocalMember, Room } from '../rooms/room/room.ts'
import type { Appender } from '../rooms/write/append.ts'
import type { Draft } from '../rooms/write/draft.ts'
import type { Users } from '../users.ts'

/** What became of a few events. */
export interface Redacted {
  readonly redacted: number
  /** Invitations that were taken back. */
  readonly withdrawn: number
  /** Why events could not be redacted. */
  readonly failed: Readonly<Record<string, string>>
}

export interface RedactorParts {
  readonly serverName: ServerName
  readonly users: Users
  readonly events: EventCache
  readonly appender: Appender
}

/** Whose events are redacted in a room, and by whom. */
export interface RedactionCase {
  readonly room: Room
  readonly userId: UserId
  readonly reason: string | null
  /** Members who may redact, in this order; empty if nobody of this server may. */
  readonly redactors: readonly LocalMember[]
}

/** Without the content of these a room falls apart, or its rules open. */
const KEPT_TYPES: ReadonlySet<string> = new Set([
  'm.room.create',
  'm.room.encryption',
  'm.room.power_levels',
  'm.room.server_acl',
  'm.room.tombstone',
  'm.room.redaction',
])

export const isRedactable = ({ type }: SaidEvent): boolean => !KEPT_TYPES.has(type)

/**
 * The members of this server who may redact a user's events in a room: the user, if that is wanted and they are in it, the operator, and
 * whoever else has the power.
 */
export async function redactorsOf(
  room: Room,
  userId: UserId,
  operator: UserId | null,
  asOperator: boolean,
): Promise<LocalMember[]> {
  const levels = await powerLevelsOf(room)
  const members = [...room.localMembers.values()]
  const self = asOperator ? [] : members.filter((member) => member.userId === userId)
  const able = members.filter((member) => levels.levelOf(member.userId) >= levels.redact && member.userId !== userId)
  able.sort((a, b) => Number(b.userId === operator) - Number(a.userId === operator))
  return [...self, ...able.slice(0, 1)]
}

/** Redacts events of one user in a room, and takes back their invitations that nobody has answered. */
export function createRedactor({ serverName, users, events, appender }: RedactorParts) {
  const isLocal = (userId: UserId) => serverOf(userId) === serverName

  /** Why it was refused; undefined if it was not. A busy room or a database that is away is no refusal, but an error. */
  async function append(roomId: RoomId, drafts: readonly Draft[]): Promise<string | undefined> {
    try {
      await appender.append(roomId, () => drafts)
      return undefined
    } catch (error) {
      if (error instanceof ProtocolError && error.status !== 503) return error.message
      throw error
    }
  }

  /** The users whom these events invited, and who have not answered. */
  async function openInvitations(room: Room, said: readonly SaidEvent[]): Promise<UserId[]> {
    const found: UserId[] = []
    const memberNids = said.filter(({ type }) => type === 'm.room.member').map(({ event_nid }) => event_nid)
    for (const event of (await events.load(memberNids)).values()) {
      const target = event.pdu.state_key
      if (!isUserId(target) || target === event.sender || membershipOf(event) !== 'invite') continue
      const current = await room.stateEvent('m.room.member', target, room.pending.state)
      if (current?.nid === event.nid) found.push(target)
    }
    return found
  }

  /** An invited user of ours declines; for one of another server the inviter takes it back, or whoever may. */
  async function withdraw({ room, redactors }: RedactionCase, targets: readonly UserId[]): Promise<number> {
    let withdrawn = 0
    const nids = await users.intern(targets.filter(isLocal))
    for (const target of targets) {
      const own = nids.get(target)
      const senders = own === undefined ? redactors : [{ userId: target, userNid: own }]
      for (const { userId: sender, userNid: senderNid } of senders) {
        const content = { membership: 'leave' }
        const refusal = await append(room.id, [{ type: 'm.room.member', stateKey: target, content, sender, senderNid }])
        if (refusal !== undefined) continue
        withdrawn++
        break
      }
    }
    return withdrawn
  }

  async function redactBy(
    { room, reason }: RedactionCase,
    { userId: sender, userNid: senderNid }: LocalMember,
    said: readonly SaidEvent[],
  ): Promise<Map<SaidEvent, string>> {
    const content = reason === null ? {} : { reason }
    const draftOf = (one: SaidEvent): Draft => ({
      type: 'm.room.redaction',
      content,
      redacts: one.event_id,
      sender,
      senderNid,
    })
    const refusal = await append(room.id, said.map(draftOf))
    const failed = new Map<SaidEvent, string>()
    if (refusal === undefined) return failed
    if (said.length === 1) return failed.set(said[0]!, refusal)
    // One that is refused refuses all of the write.
    for (const one of said) {
      const why = await append(room.id, [draftOf(one)])
      if (why !== undefined) failed.set(one, why)
    }
    return failed
  }

  return async (what: RedactionCase, said: readonly SaidEvent[]): Promise<Redacted> => {
    const withdrawn = await withdraw(what, await openInvitations(what.room, said))
    const wanted = said.filter(isRedactable)
    let left = new Map(wanted.map((one) => [one, 'Nobody of this server may redact events of this user in the room.']))
    for (const member of what.redactors) {
      if (left.size === 0) break
      left = await redactBy(what, member, [...left.keys()])
    }
    const failed = Object.fromEntries([...left].map(([{ event_id }, why]) => [event_id, why]))
    return { redacted: wanted.length - left.size, withdrawn, failed }
  }
}
