import type { EventId, RoomId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { writeJson } from '../../core/large-integers.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock, Random } from '../clock.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import { mustBeMember } from '../rooms/room/not-in-room.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { ClientTransaction } from '../rooms/write/transactions.ts'
import type { LedgerWaker } from '../sync/ledger-waker.ts'
import type { Notifier } from '../sync/notifier.ts'
import type { ShadowBans } from './shadow-bans.ts'

export interface ShadowParts {
  readonly bans: ShadowBans
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly clock: Clock
  readonly random: Random
  readonly ledger: Ledger
  readonly ledgerWaker: Pick<LedgerWaker, 'rooms'>
  readonly notifier: Pick<Notifier, 'wakeUsers'>
}

const EVENT_ID_BYTES = 32

/**
 * What users do in rooms, where the events of shadow-banned users are accepted and shown to themselves alone. They enter and leave rooms
 * like others; they invite, remove and change nobody and nothing, and are not told.
 */
export function createShadowedRooms(rooms: Rooms, parts: ShadowParts): Rooms {
  const { bans, registry, clock, random, ledger, ledgerWaker, notifier } = parts
  const isBanned = ({ userNid }: Requester): boolean => bans.has(userNid)
  const newId = () => `$${random.bytes(EVENT_ID_BYTES).toString('base64url')}` as EventId

  async function pretend(by: Requester, roomId: RoomId): Promise<EventId> {
    mustBeMember(await registry.get(roomId), by)
    return newId()
  }

  /** A membership that is not changed: whoever asks is answered as if it were. */
  const withoutEffect =
    <Rest extends readonly unknown[]>(act: (by: Requester, roomId: RoomId, ...rest: Rest) => Promise<void>) =>
    async (by: Requester, roomId: RoomId, ...rest: Rest): Promise<void> => {
      if (!isBanned(by)) return act(by, roomId, ...rest)
      await pretend(by, roomId)
    }

  async function haunt(
    by: Requester,
    roomId: RoomId,
    { type, content }: { readonly type: string; readonly content: JsonObject },
    transaction: ClientTransaction | undefined,
  ): Promise<EventId> {
    const { nid: roomNid } = mustBeMember(await registry.get(roomId), by)
    const key = transaction && `${by.deviceId} ${transaction.path}`
    const before = key === undefined ? undefined : bans.ghostOf(by.userNid, key)
    if (before) return before.eventId
    const eventId = newId()
    const event = {
      content,
      event_id: eventId,
      origin_server_ts: clock.now(),
      sender: by.userId,
      type,
      unsigned: transaction ? { transaction_id: transaction.txnId } : {},
    }
    const json = writeJson(event)
    await ledger.append(
      async () => undefined,
      (_, position) => {
        bans.addGhost(by.userNid, { eventId, roomNid, position, json, transaction: key })
        ledgerWaker.rooms.record(roomNid, position)
        notifier.wakeUsers([by.userNid])
      },
    )
    return eventId
  }

  return {
    create(by, request, offence) {
      if (!isBanned(by)) return rooms.create(by, request, offence)
      const { room_alias_name: _, ...rest } = request
      return rooms.create(by, { ...rest, visibility: 'private', invite: [] }, offence)
    },
    // Others see that they come and go, and nothing that they wrote.
    join(by, roomId, details) {
      if (!isBanned(by)) return rooms.join(by, roomId, details)
      const { via, third_party_signed: signed } = details
      return rooms.join(by, roomId, { ...(via && { via }), ...(signed && { third_party_signed: signed }) })
    },
    leave: (by, roomId, details) => rooms.leave(by, roomId, isBanned(by) ? {} : details),
    forget: rooms.forget,
    mustShareRoom: rooms.mustShareRoom,
    knock: async (by, roomId, details) => (isBanned(by) ? undefined : rooms.knock(by, roomId, details)),
    invite: withoutEffect(rooms.invite),
    kick: withoutEffect(rooms.kick),
    ban: withoutEffect(rooms.ban),
    unban: withoutEffect(rooms.unban),
    send(by, roomId, type, sent, transaction) {
      if (!isBanned(by)) return rooms.send(by, roomId, type, sent, transaction)
      return haunt(by, roomId, { type, content: sent.content }, transaction)
    },
    setState(by, roomId, type, stateKey, sent, transaction) {
      const isLeaving = type === 'm.room.member' && stateKey === by.userId && sent.content.membership === 'leave'
      if (!isBanned(by)) return rooms.setState(by, roomId, type, stateKey, sent, transaction)
      if (isLeaving) {
        const bare = { content: { membership: 'leave' }, offence: undefined }
        return rooms.setState(by, roomId, type, stateKey, bare, transaction)
      }
      return pretend(by, roomId)
    },
    redact(by, roomId, target, sent, transaction) {
      if (!isBanned(by)) return rooms.redact(by, roomId, target, sent, transaction)
      return pretend(by, roomId)
    },
  }
}
