import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import { flawInState } from '../../../core/event/state-content.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { JsonObject, JsonOffence } from '../../../core/json.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { encodeCanonical } from '../../../core/signing/canonical-json.ts'
import { accountSuspended, type Requester } from '../../accounts/requester.ts'
import type { InviteRemotely } from '../remote/remote-invites.ts'
import type { EventCache } from '../room/event-cache.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import type { Room } from '../room/room.ts'
import type { Appender } from '../write/append.ts'
import type { Draft, Transaction } from '../write/draft.ts'
import type { Transactions } from '../write/transactions.ts'
import type { CheckRelation } from './relation-check.ts'
import type { Rooms, SentContent } from './rooms.ts'

export interface ActionParts {
  readonly appender: Appender
  readonly transactions: Transactions
  readonly events: Pick<EventCache, 'getById'>
  /** Refuses a canonical alias that does not lead to the room. */
  checkCanonicalAlias(room: Room, content: SentContent['content']): Promise<void>
  /** Refuses memberships that joining and inviting would refuse. */
  checkMember(by: Requester, room: Room, target: string, content: SentContent['content']): Promise<void>
  readonly checkRelation: CheckRelation
  readonly inviteRemotely: InviteRemotely
  readonly serverName: ServerName
}

const OFFENCES: Readonly<Record<JsonOffence, string>> = {
  float: 'a number with a fraction or an exponent',
  'negative-zero': 'the number -0',
  'integer-range': 'an integer beyond 2^53-1',
  'lone-surrogate': 'half of a surrogate pair',
}

/** Refuses what canonical JSON forbids, if the room version requires that. A lone surrogate is refused in every version. */
export function checkOffence(version: RoomVersion, offence: JsonOffence | undefined): void {
  if (offence === undefined || (!version.enforcesCanonicalJson && offence !== 'lone-surrogate')) return
  throw new ProtocolError(
    'M_BAD_JSON',
    `The content holds ${OFFENCES[offence]}, which events in this room may not have.`,
  )
}

/**
 * @throws ProtocolError `M_BAD_JSON` for state that lacks a member its type needs, or has it with a wrong type; `M_INVALID_PARAM` for
 * aliases
 */
export function checkStateContent(type: string, content: JsonObject): void {
  const flaw = flawInState(type, content)
  if (flaw === undefined) return
  const errcode = type === 'm.room.canonical_alias' ? 'M_INVALID_PARAM' : 'M_BAD_JSON'
  throw new ProtocolError(errcode, `The content of ${type} ${flaw}.`)
}

/** Sending, setting state and redacting. */
export function createRoomActions(parts: ActionParts): Pick<Rooms, 'send' | 'setState' | 'redact'> {
  const { appender, transactions } = parts

  async function appendOne(
    roomId: RoomId,
    offence: JsonOffence | undefined,
    draft: Draft,
    transaction: Transaction | undefined,
  ): Promise<EventId> {
    const plan = (room: Room): readonly Draft[] => {
      mustBeMember(room, { userNid: draft.senderNid })
      checkOffence(room.version, offence)
      return [draft]
    }
    return (await appender.append(roomId, plan, transaction)).eventIds[0]!
  }

  function isInvitationElsewhere(type: string, target: string, { membership }: JsonObject): target is UserId {
    return (
      type === 'm.room.member' && membership === 'invite' && isUserId(target) && serverOf(target) !== parts.serverName
    )
  }

  return {
    send(by, roomId, type, { content, offence, ...at }, transaction) {
      const sender = { sender: by.userId, senderNid: by.userNid }
      const draft = { type, content, ...sender, ...at, ...redactionTarget({ type, content }) }
      return transactions.once(by, transaction, (txn) =>
        parts.checkRelation(by, roomId, draft, txn, () => appendOne(roomId, offence, draft, txn)),
      )
    },

    setState(by, roomId, type, stateKey, { content, offence, ...at }, transaction) {
      return transactions.once(by, transaction, async (txn) => {
        checkStateContent(type, content)
        if (isInvitationElsewhere(type, stateKey, content)) return parts.inviteRemotely(by, roomId, stateKey, content)
        let unchanged: EventId | undefined
        const plan = async (room: Room): Promise<readonly Draft[]> => {
          if (type !== 'm.room.member' || stateKey !== by.userId) mustBeMember(room, by)
          checkOffence(room.version, offence)
          const kept = await withoutStrayAuthoriser(room, by, type, stateKey, content)
          unchanged = await sameState(room, by, type, stateKey, kept)
          if (unchanged !== undefined) return []
          if (type === 'm.room.member') await parts.checkMember(by, room, stateKey, kept)
          if (type === 'm.room.canonical_alias') await parts.checkCanonicalAlias(room, kept)
          return [{ type, stateKey, content: kept, sender: by.userId, senderNid: by.userNid, ...at }]
        }
        const appended = await appender.append(roomId, plan, txn)
        return unchanged ?? appended.eventIds[0]!
      })
    },

    redact(by, roomId, target, { content, offence }, transaction) {
      const draft = {
        type: 'm.room.redaction',
        content,
        redacts: target,
        sender: by.userId,
        senderNid: by.userNid,
      }
      return transactions.once(by, transaction, async (txn) => {
        if (by.isSuspended && (await parts.events.getById(target))?.senderNid !== by.userNid) throw accountSuspended()
        return appendOne(roomId, offence, draft, txn)
      })
    },
  }
}

/** The target of a redaction that was sent like any other event, with `redacts` in its content. */
function redactionTarget({ type, content }: Pick<Draft, 'type' | 'content'>): { redacts?: EventId } {
  if (type !== 'm.room.redaction') return {}
  if (typeof content.redacts !== 'string') {
    throw new ProtocolError('M_MISSING_PARAM', 'A redaction needs `redacts`: the id of the event to redact.')
  }
  return { redacts: content.redacts as EventId }
}

/**
 * Drops the authorising user from the member event of a user who is already in the room: clients that repeat their member event repeat it
 * too (room version 8).
 */
async function withoutStrayAuthoriser(
  room: Room,
  by: Requester,
  type: string,
  stateKey: string,
  content: JsonObject,
): Promise<JsonObject> {
  const { join_authorised_via_users_server: authoriser, ...kept } = content
  if (type !== 'm.room.member' || stateKey !== by.userId || authoriser === undefined) return content
  const current = await room.stateEvent(type, stateKey, room.pending.state)
  return content.membership === 'join' && membershipOf(current) === 'join' ? kept : content
}

/** The current state event, if it has the same sender and content. Setting the same state again is no news. */
async function sameState(
  room: Room,
  by: Requester,
  type: string,
  stateKey: string,
  content: SentContent['content'],
): Promise<EventId | undefined> {
  const current = await room.stateEvent(type, stateKey, room.pending.state)
  if (current?.sender !== by.userId) return undefined
  return encodeCanonical(current.pdu.content) === encodeCanonical(content) ? current.id : undefined
}
