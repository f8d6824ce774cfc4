import type { Aliases } from '../rooms/act/aliases.ts'
import type { Gate } from './gate.ts'

/** The names of rooms, which only those give whom the gate lets. */
export const gatedAliases = (aliases: Aliases, gate: Pick<Gate, 'createAlias'>): Aliases => ({
  ...aliases,
  async create(by, alias, roomId) {
    await gate.createAlias(by.userId, alias)
    await aliases.create(by, alias, roomId)
  },
})
