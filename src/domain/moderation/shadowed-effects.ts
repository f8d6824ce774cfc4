import { ProtocolError } from '../../core/errors.ts'
import type { Profiles } from '../accounts/profiles.ts'
import type { ToDevice } from '../e2e/to-device.ts'
import type { AddressInvites } from '../rooms/act/address-invites.ts'
import type { Upgrades } from '../rooms/act/upgrade/upgrades.ts'
import type { RoomDirectory } from '../rooms/read/directory.ts'
import type { Receipts } from '../rooms/read/receipts.ts'
import type { Typing } from '../rooms/read/typing.ts'
import type { Presence } from '../sync/presence.ts'
import type { ShadowBans } from './shadow-bans.ts'

type Bans = Pick<ShadowBans, 'has'>

/** What others would notice of a shadow-banned user besides events. Each is answered as always, and has no effect on others. */

export function shadowTyping(typing: Typing, bans: Bans): Typing {
  return {
    ...typing,
    set: async (by, roomId, timeoutMs) => (bans.has(by.userNid) ? undefined : typing.set(by, roomId, timeoutMs)),
  }
}

/** Others see whether they are there, and nothing that they wrote. */
export function shadowPresence(presence: Presence, bans: Bans): Presence {
  return {
    ...presence,
    set: (user, state, message) => presence.set(user, state, bans.has(user.userNid) ? undefined : message),
  }
}

/** Their receipts are for themselves. */
export function shadowReceipts(receipts: Receipts, bans: Bans): Receipts {
  return {
    ...receipts,
    mark: (by, roomId, kind, eventId, threadId) =>
      receipts.mark(by, roomId, kind === 'm.read' && bans.has(by.userNid) ? 'm.read.private' : kind, eventId, threadId),
    markAll(by, roomId, marks) {
      const { 'm.read': read, ...others } = marks
      if (read === undefined || !bans.has(by.userNid)) return receipts.markAll(by, roomId, marks)
      return receipts.markAll(by, roomId, { 'm.read.private': read, ...others })
    },
  }
}

/** Only the messages to their own devices are sent. */
export function shadowToDevice(toDevice: ToDevice, bans: Bans): ToDevice {
  return {
    send(by, request) {
      if (!bans.has(by.userNid)) return toDevice.send(by, request)
      const own = request.messages[by.userId]
      return toDevice.send(by, { ...request, messages: own === undefined ? {} : { [by.userId]: own } })
    },
  }
}

export function shadowProfiles(profiles: Profiles, bans: Bans): Profiles {
  return {
    ...profiles,
    change: async (by, fields) => (bans.has(by.userNid) ? undefined : profiles.change(by, fields)),
    replace: async (by, fields) => (bans.has(by.userNid) ? undefined : profiles.replace(by, fields)),
  }
}

export function shadowAddressInvites(invites: AddressInvites, bans: Bans): AddressInvites {
  return {
    invite: async (by, ...rest) => (bans.has(by.userNid) ? undefined : invites.invite(by, ...rest)),
    createRoom(by, request, offence) {
      const { invite_3pid: _, ...rest } = request
      return invites.createRoom(by, bans.has(by.userNid) ? rest : request, offence)
    },
  }
}

export function shadowDirectory(directory: RoomDirectory, bans: Bans): RoomDirectory {
  return {
    ...directory,
    setVisibility: async (by, ...rest) => (bans.has(by.userNid) ? undefined : directory.setVisibility(by, ...rest)),
  }
}

/** An upgrade has a new room as its answer, so it cannot be pretended. */
export function shadowUpgrades(upgrades: Upgrades, bans: Bans): Upgrades {
  return {
    ...upgrades,
    async upgrade(by, roomId, request) {
      if (!bans.has(by.userNid)) return upgrades.upgrade(by, roomId, request)
      throw new ProtocolError('M_FORBIDDEN', 'You may not upgrade this room.')
    },
  }
}
