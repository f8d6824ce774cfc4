import { ProtocolError } from '../../core/errors.ts'
import type { RoomId } from '../../core/ids.ts'
import { listNetworkRoom, unlistNetworkRoom } from '../../store/appservices/appservice-rooms.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { DirectoryVisibility } from '../rooms/read/directory.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'

/** The rooms of their networks that application services list (client-server API, "Application service room directory"). */
export interface NetworkRooms {
  /** @throws ProtocolError `M_FORBIDDEN` if the caller is no service, `M_NOT_FOUND` */
  setVisibility(
    by: Pick<Requester, 'appservice'>,
    networkId: string,
    roomId: RoomId,
    visibility: DirectoryVisibility,
  ): Promise<void>
}

export function createNetworkRooms({ db, rooms }: { db: Database; rooms: Pick<RoomRegistry, 'get'> }): NetworkRooms {
  return {
    async setVisibility({ appservice }, networkId, roomId, visibility) {
      if (appservice === undefined) {
        throw new ProtocolError('M_FORBIDDEN', 'Only application services list rooms of networks.')
      }
      const room = await rooms.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const network = { appserviceId: appservice.id, networkId }
      const write = visibility === 'public' ? listNetworkRoom : unlistNetworkRoom
      await db.tx((tx) => write(tx, network, room.nid))
    },
  }
}
