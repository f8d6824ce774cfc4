import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { membershipOf } from '../../core/event/content.ts'
import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import { findAccount } from '../../store/accounts/accounts.ts'
import { changeProfile } from '../../store/accounts/profiles.ts'
import type { Database } from '../../store/db/db.ts'
import { findNoticeRoom, setNoticeRoom } from '../../store/rooms/server-notice-rooms.ts'
import type { AccountData } from '../accounts/account-data.ts'
import type { Requester } from '../accounts/requester.ts'
import type { AppserviceServices } from '../appservices/appservice-services.ts'
import { NOTICES_SERVICE } from '../appservices/notices-registration.ts'
import type { Clock, Random } from '../clock.ts'
import type { Rooms, SentContent } from '../rooms/act/rooms.ts'
import { noticesUser } from '../rooms/room/notice-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { ClientTransaction } from '../rooms/write/transactions.ts'
import { activeAccount, onBehalfOf } from './local-account.ts'
import type { Operator } from './operator.ts'

export interface Notice {
  readonly userId: UserId
  readonly type: string
  /** If it is set, the notice is a state event. */
  readonly stateKey: string | undefined
  readonly sent: SentContent
}

/** Sends server notices to a user, in a room of the two (client-server API, "Server Notices"). */
export interface ServerNotices {
  /**
   * Reserves and describes the user that sends the notices, who belongs to an application service in this process. @throws Error if
   * somebody who can log in has that name
   */
  prepare(): Promise<void>
  /**
   * Sends an event to a user, and invites them first if necessary. A repeated transaction id of the same operator sends nothing again.
   * @throws ProtocolError `M_UNKNOWN` (400) if notices are off, `M_NOT_FOUND`, `M_USER_DEACTIVATED`
   */
  send(by: Operator, notice: Notice, transaction: ClientTransaction): Promise<EventId>
}

export interface NoticeParts {
  readonly config: Pick<Config, 'server_name' | 'server_notices'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly accountData: AccountData
  readonly registry: RoomRegistry
  readonly rooms: Rooms
  readonly appservices: Pick<AppserviceServices, 'registry' | 'callers'>
}

/** Users can only read. */
const READERS_LEVEL = -10

export function createServerNotices(parts: NoticeParts): ServerNotices {
  const { config, db, registry, rooms, appservices } = parts
  const { display_name, avatar_url, room_name } = config.server_notices
  const speakerId = noticesUser(config)
  const byUser = createKeyedQueue<number>()

  async function speaker(): Promise<Requester> {
    const service = appservices.registry.byId(NOTICES_SERVICE)
    const nobodyElse = { userId: undefined, deviceId: undefined }
    const found = service && (await appservices.callers.find(service.registration.as_token, nobodyElse))
    if (found) return found
    const advice = 'This server sends no notices: see `server_notices.localpart`.'
    throw new ProtocolError('M_UNKNOWN', advice, { status: 400 })
  }

  async function makeRoom(by: Requester, user: Requester): Promise<RoomId> {
    const { roomId } = await rooms.create(
      by,
      {
        preset: 'private_chat',
        name: room_name,
        invite: [user.userId],
        creation_content: { 'm.federate': false },
        power_level_content_override: { users_default: READERS_LEVEL },
      },
      undefined,
    )
    const room = (await registry.get(roomId))!
    await db.tx((tx) => setNoticeRoom(tx, user.userNid, room.nid))
    await parts.accountData.set(user.userNid, roomId, 'm.tag', { tags: { 'm.server_notice': {} } })
    return roomId
  }

  async function roomOf(by: Requester, user: Requester): Promise<RoomId> {
    const nid = await findNoticeRoom(db, user.userNid)
    if (nid === undefined) return makeRoom(by, user)
    const room = await registry.getByNid(nid)
    // The user left before notice rooms were stored, or was removed.
    if (membershipOf(await room.stateEvent('m.room.member', user.userId)) === 'leave') {
      await rooms.invite(by, room.id, user.userId, {})
    }
    return room.id
  }

  return {
    async prepare() {
      if (speakerId === undefined) return
      const existing = await findAccount(db, speakerId)
      if (existing?.password_hash) {
        throw new Error(`server_notices.localpart: ${speakerId} is the account of somebody who logs in by password`)
      }
      await db.tx(async (tx) => {
        const userNid = existing!.user_nid
        await changeProfile(tx, userNid, { displayname: display_name, avatar_url })
      })
    },
    async send(operator, { userId, type, stateKey, sent }, transaction) {
      const by = { ...(await speaker()), tokenNid: operator.requester?.tokenNid ?? 0 }
      const user = onBehalfOf(await activeAccount(db, userId, config.server_name))
      if (user.userNid === by.userNid) {
        throw new ProtocolError('M_INVALID_PARAM', 'This is the user that speaks for the server.')
      }
      // One after another, so that two first notices make only one room.
      const roomId = await byUser.run(user.userNid, () => roomOf(by, user))
      if (stateKey !== undefined) return rooms.setState(by, roomId, type, stateKey, sent)
      return rooms.send(by, roomId, type, sent, transaction)
    },
  }
}
