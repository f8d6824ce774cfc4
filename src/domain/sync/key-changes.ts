import { ProtocolError } from '../../core/errors.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Restores } from '../restores.ts'
import { roomsWithEvents } from './active-rooms.ts'
import { changedWithin, type DeviceChanges, deviceChanges } from './device-changes.ts'
import type { SyncSources } from './sources.ts'
import { decodeStreamToken, epochOf, type StreamPosition } from './token.ts'
import type { UserRooms } from './user-rooms.ts'

export interface KeyChanges {
  /**
   * Whose device lists changed since a sync (client-server API, `GET keys/changes`). Includes changes after `to`: at worst, a client
   * fetches some keys twice.
   *
   * @throws ProtocolError `M_INVALID_PARAM` for a token that is not ours
   */
  between(by: Requester, from: string, to: string): Promise<DeviceChanges>
}

export function createKeyChanges(parts: {
  readonly sources: SyncSources
  readonly userRooms: UserRooms
  readonly restores: Restores
  now(): StreamPosition
}): KeyChanges {
  const { sources, userRooms, restores } = parts

  function read(name: string, token: string): StreamPosition {
    const position = decodeStreamToken(token)
    if (position) return position
    throw new ProtocolError('M_INVALID_PARAM', `\`${name}\` is not a token that this server gave out.`)
  }

  return {
    async between(by, from, to) {
      const given = read('from', from)
      const since = { ...given, ...restores.lostAfter(given, epochOf(given)) }
      read('to', to)
      const rooms = await userRooms.of(by.userNid)
      const now = parts.now()
      const joined = new Map([...rooms].filter(([, { membership }]) => membership === 'join'))
      const active = await roomsWithEvents(sources, since.events, [...joined.keys()])
      const others = [...rooms].filter(([nid, room]) => !joined.has(nid) && changedWithin(room, since, now))
      const departed = others.map(([nid]) => nid)
      const { changed, left } = await deviceChanges({ sources, by, since, now }, joined, [...active], departed)
      return { changed, left }
    },
  }
}
