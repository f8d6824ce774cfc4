import { type PowerLevels, readPowerLevels } from '../../../core/auth/power-levels.ts'
import { ProtocolError } from '../../../core/errors.ts'
import type { Room } from './room.ts'
import type { Viewer } from './viewer.ts'

/** The current power levels of a room. */
export async function powerLevelsOf(room: Room): Promise<PowerLevels> {
  const [levels, create] = await Promise.all([
    room.stateEvent('m.room.power_levels', ''),
    room.stateEvent('m.room.create', ''),
  ])
  return readPowerLevels(room.version, levels?.authPdu.content, create?.authPdu)
}

/** Whether a user is in a room and may set its canonical alias; such a user may also change its other public names. */
export async function mayName(room: Room, user: Viewer): Promise<boolean> {
  if (!room.localMembers.has(user.userNid)) return false
  const levels = await powerLevelsOf(room)
  return levels.levelOf(user.userId) >= levels.toSend('m.room.canonical_alias', true)
}

/** @throws ProtocolError `M_FORBIDDEN` */
export async function mustName(room: Room, user: Viewer): Promise<void> {
  if (await mayName(room, user)) return
  throw new ProtocolError('M_FORBIDDEN', 'This takes the power to set the canonical alias of the room.')
}
