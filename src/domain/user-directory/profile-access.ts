import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { serverOf, type UserId } from '../../core/ids.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Rooms } from '../rooms/act/rooms.ts'

/** Who may look up the profiles of this server's users (`profiles`). Those of others are looked after by their servers. */
export interface ProfileAccess {
  /** @throws ProtocolError `M_MISSING_TOKEN` for who is not signed in, `M_FORBIDDEN` for who shares no room, whether the user exists or not */
  require(by: Requester | undefined, userId: UserId): Promise<void>
  /** Another server asks. @throws ProtocolError `M_FORBIDDEN` */
  requireForServers(): void
}

export function createProfileAccess({
  config,
  rooms,
}: {
  readonly config: Pick<Config, 'server_name' | 'profiles'>
  readonly rooms: Pick<Rooms, 'mustShareRoom'>
}): ProfileAccess {
  const { visible_to: visibleTo, over_federation: isForServers } = config.profiles
  return {
    async require(by, userId) {
      if (visibleTo === 'everybody' || serverOf(userId) !== config.server_name) return
      if (!by) throw new ProtocolError('M_MISSING_TOKEN', 'Sign in to look up profiles of this server.')
      if (visibleTo === 'neighbours') await rooms.mustShareRoom(by, userId)
    },
    requireForServers() {
      if (isForServers) return
      throw new ProtocolError('M_FORBIDDEN', 'This server does not show profiles to other servers.')
    },
  }
}
