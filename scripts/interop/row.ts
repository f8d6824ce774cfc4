import { untilMember } from './seen.ts'
import type { Side, Sides } from './sides.ts'

/** Stands in the name of a row for the other homeserver. */
export const PEER = '{peer}'

/** Something that two homeservers do with each other. */
export interface Row {
  readonly name: string
  /** The room versions that know it; `once`: no matter of rooms. */
  readonly versions: readonly string[] | 'all' | 'once'
  /** Gives what is worth saying of it. @throws Error when it is not as it should be */
  run(sides: Sides, version: string, options: RowOptions): Promise<string | undefined>
}

export interface RowOptions {
  readonly partitionMs: number
}

type Play = (host: Side, guest: Side, version: string, options: RowOptions) => Promise<void>

/** A row for each of the two as the host of a room. `name` says it of `{host}` and `{guest}`. */
export function bothWays(name: string, play: Play, versions: Row['versions'] = 'all'): Row[] {
  return [rowOf('hearth', 'peer', name, play, versions), rowOf('peer', 'hearth', name, play, versions)]
}

function rowOf(...[host, guest, name, play, versions]: [SideKey, SideKey, string, Play, Row['versions']]): Row {
  return {
    name: name.replaceAll('{host}', label(host)).replaceAll('{guest}', label(guest)),
    versions,
    run: async (sides, version, options) => {
      await play(sides[host], sides[guest], version, options)
      return undefined
    },
  }
}

type SideKey = 'hearth' | 'peer'

const label = (side: SideKey) => (side === 'hearth' ? 'Hearth' : PEER)

/** A public room of the host with the guest in it. */
export async function meet(host: Side, guest: Side, version: string, body: object = {}): Promise<string> {
  const room = await host.person.createRoom({ preset: 'public_chat', room_version: version, ...body })
  await guest.person.join(room, host.name)
  await untilMember(host, room, guest, 'join')
  return room
}

/** Of the room's power levels, with this level for the guest. */
export async function setLevel(host: Side, room: string, guest: Side, level: number): Promise<string> {
  const levels = await host.person.state(room, 'm.room.power_levels')
  const users = { ...levels.users, [guest.person.userId]: level }
  return host.person.set(room, 'm.room.power_levels', { ...levels, users })
}
