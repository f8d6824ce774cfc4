import { type PowerLevels, readPowerLevels } from '../../../../core/auth/power-levels.ts'
import { ProtocolError } from '../../../../core/errors.ts'
import type { EventId, RoomAlias, RoomId, UserId } from '../../../../core/ids.ts'
import type { JsonObject } from '../../../../core/json.ts'
import type { Room } from '../../room/room.ts'
import type { Appender } from '../../write/append.ts'
import type { Draft } from '../../write/draft.ts'
import { withoutAlias } from '../canonical-alias.ts'
import { closingLevels } from './levels.ts'

const BODY = 'This room has been replaced'

/** The user who upgrades a room, in the terms of drafts. */
export type Upgrader = Pick<Draft, 'sender' | 'senderNid'>

async function levelsIn(room: Room): Promise<PowerLevels> {
  const { state } = room.pending
  const [levels, create] = await Promise.all([
    room.stateEvent('m.room.power_levels', '', state),
    room.stateEvent('m.room.create', '', state),
  ])
  return readPowerLevels(room.version, levels?.authPdu.content, create?.authPdu)
}

/** @throws ProtocolError `M_FORBIDDEN` for a user who may not end the room */
export async function mustBeAbleToEnd(room: Room, userId: UserId): Promise<void> {
  const levels = await levelsIn(room)
  if (levels.levelOf(userId) >= levels.toSend('m.room.tombstone', true)) return
  throw new ProtocolError('M_FORBIDDEN', 'You cannot upgrade this room: it takes the power to send m.room.tombstone.')
}

function tombstone(by: Upgrader, newRoomId: RoomId): Draft {
  const content = { body: BODY, replacement_room: newRoomId }
  return { type: 'm.room.tombstone', stateKey: '', content, ...by }
}

/** All that ends a room, as far as the user has the power for it. The power levels come right after the tombstone. */
async function ending(room: Room, by: Upgrader, newRoomId: RoomId, aliases: readonly RoomAlias[]): Promise<Draft[]> {
  const levels = await levelsIn(room)
  const mayChange = (type: string) => levels.levelOf(by.sender) >= levels.toSend(type, true)
  const { state } = room.pending
  const drafts = [tombstone(by, newRoomId)]
  const current = await room.stateEvent('m.room.power_levels', '', state)
  const closed = current && closingLevels(room.version, current.authPdu.content)
  if (closed && mayChange('m.room.power_levels')) {
    drafts.push({ type: 'm.room.power_levels', stateKey: '', content: closed, ...by })
  }
  const named = await room.stateEvent('m.room.canonical_alias', '', state)
  const names = named && withoutAliases(named.content, aliases)
  if (names && mayChange('m.room.canonical_alias')) {
    drafts.push({ type: 'm.room.canonical_alias', stateKey: '', content: names, ...by })
  }
  return drafts
}

/** The content of `m.room.canonical_alias` without these aliases; undefined when it names none of them. */
function withoutAliases(content: JsonObject, aliases: readonly RoomAlias[]): JsonObject | undefined {
  let rest: JsonObject | undefined
  for (const alias of aliases) rest = withoutAlias(rest ?? content, alias) ?? rest
  return rest
}

/**
 * Sends the tombstone, and with it, in one commit, what else ends the room: its aliases move on, and its power levels let ordinary members
 * do nothing more. If these are refused, the tombstone stands alone.
 *
 * @throws ProtocolError `M_FORBIDDEN`
 */
export async function endRoom(
  appender: Appender,
  roomId: RoomId,
  by: Upgrader,
  { newRoomId, aliases }: { readonly newRoomId: RoomId; readonly aliases: readonly RoomAlias[] },
): Promise<void> {
  try {
    await appender.append(roomId, (room) => ending(room, by, newRoomId, aliases))
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
    await appender.append(roomId, () => [tombstone(by, newRoomId)])
  }
}

/** The tombstone of a room that names a certain replacement, if that is its current one. */
export async function tombstoneFor(room: Room, newRoomId: RoomId): Promise<{ id: EventId } | undefined> {
  const event = await room.stateEvent('m.room.tombstone', '', room.pending.state)
  return event?.content.replacement_room === newRoomId ? event : undefined
}
