import { MAX_ADDRESSES_INVITED } from '../limits.ts'
import type { AddressInvites } from '../rooms/act/address-invites.ts'
import type { Aliases } from '../rooms/act/aliases.ts'
import type { Upgrades } from '../rooms/act/upgrade/upgrades.ts'
import type { Gate } from './gate.ts'

/** The names of rooms, which only those give whom the gate lets. */
export const gatedAliases = (aliases: Aliases, gate: Pick<Gate, 'createAlias'>): Aliases => ({
  ...aliases,
  async create(by, alias, roomId) {
    await gate.createAlias(by.userId, alias)
    await aliases.create(by, alias, roomId)
  },
})

/** Invitations to addresses, which only those send whom the gate lets. */
export const gatedAddressInvites = (invites: AddressInvites, gate: Pick<Gate, 'inviteByAddress'>): AddressInvites => ({
  async invite(by, roomId, invited, details) {
    await gate.inviteByAddress(by.userId, [invited], roomId)
    await invites.invite(by, roomId, invited, details)
  },
  async createRoom(by, request, offence) {
    const { invite_3pid: invited = [] } = request
    // More are refused anyway.
    if (invited.length > 0) await gate.inviteByAddress(by.userId, invited.slice(0, MAX_ADDRESSES_INVITED), undefined)
    return invites.createRoom(by, request, offence)
  },
})

/** Upgrades, which make rooms. */
export const gatedUpgrades = (upgrades: Upgrades, gate: Pick<Gate, 'createRoom'>): Upgrades => ({
  ...upgrades,
  async upgrade(by, roomId, request) {
    await gate.createRoom(by.userId)
    return upgrades.upgrade(by, roomId, request)
  },
})
