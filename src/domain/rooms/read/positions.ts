import { ProtocolError } from '../../../core/errors.ts'
import type { Reader } from '../../../store/db/db.ts'
import { roomPositionAt } from '../../../store/events/events.ts'
import { eventPositionOf } from '../../sync/token.ts'
import { decodePosition } from '../room/position-token.ts'
import type { Room } from '../room/room.ts'

/** Reads pagination tokens, of rooms and of sync. */
export interface Positions {
  /** The timeline position of a token in a room. @throws ProtocolError `M_INVALID_PARAM` for a text that is no token */
  positionOf(token: string, room: Room): Promise<number>
}

export function createPositions({ db }: { db: Reader }): Positions {
  return {
    async positionOf(token, room) {
      const decoded = decodePosition(token)
      if (decoded && 'pos' in decoded) return decoded.pos
      const position = decoded && eventPositionOf(decoded.syncToken)
      if (!position) throw new ProtocolError('M_INVALID_PARAM', 'This is no pagination token of this server.')
      return roomPositionAt(db, room.nid, position)
    },
  }
}
