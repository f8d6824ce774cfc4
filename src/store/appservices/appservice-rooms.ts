import type { Reader, Tx } from '../db/db.ts'
import type { PublishedRow } from '../rooms/published-rooms.ts'

// Tables: appservice_room; read: published_room, room

export interface NetworkName {
  readonly appserviceId: string
  readonly networkId: string
}

export async function listNetworkRoom(
  tx: Tx,
  { appserviceId, networkId }: NetworkName,
  roomNid: number,
): Promise<void> {
  await tx.query(
    'INSERT INTO appservice_room (appservice_id, network_id, room_nid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [appserviceId, networkId, roomNid],
  )
}

export async function unlistNetworkRoom(
  tx: Tx,
  { appserviceId, networkId }: NetworkName,
  roomNid: number,
): Promise<void> {
  await tx.query('DELETE FROM appservice_room WHERE appservice_id = $1 AND network_id = $2 AND room_nid = $3', [
    appserviceId,
    networkId,
    roomNid,
  ])
}

/** The rooms of one network. */
export function getNetworkRooms(reader: Reader, { appserviceId, networkId }: NetworkName): Promise<PublishedRow[]> {
  return reader.query(
    `SELECT room_nid, state_chain, state_seq FROM appservice_room JOIN room USING (room_nid)
     WHERE appservice_id = $1 AND network_id = $2`,
    [appserviceId, networkId],
  )
}

/** The rooms in the public directory, and those of all networks. */
export function getRoomsOfAllNetworks(reader: Reader): Promise<PublishedRow[]> {
  return reader.query(
    `SELECT room_nid, state_chain, state_seq FROM room
     WHERE room_nid IN (SELECT room_nid FROM appservice_room UNION SELECT room_nid FROM published_room)`,
  )
}
