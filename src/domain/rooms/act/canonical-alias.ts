import { ProtocolError } from '../../../core/errors.ts'
import { altAliasesOf, canonicalAliasOf } from '../../../core/event/content.ts'
import { isRoomAlias, type RoomAlias } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getAliases } from '../../../store/rooms/aliases.ts'
import type { Room } from '../room/room.ts'

/** The aliases in the content of `m.room.canonical_alias`. @throws ProtocolError `M_INVALID_PARAM` when one is malformed */
function aliasesIn({ alias, alt_aliases: alternatives = [] }: JsonObject): RoomAlias[] {
  if (!Array.isArray(alternatives))
    throw new ProtocolError('M_INVALID_PARAM', '`alt_aliases` must be a list of aliases.')
  const named = alias === undefined || alias === null || alias === '' ? alternatives : [alias, ...alternatives]
  return named.map((one) => {
    if (!isRoomAlias(one)) throw new ProtocolError('M_INVALID_PARAM', 'An alias is not of the form #name:server.')
    return one
  })
}

/**
 * Refuses a canonical alias that does not lead to the room. Does not check those that the room already has, so that a dead alias does not
 * prevent changing another.
 *
 * @throws ProtocolError `M_INVALID_PARAM`, `M_BAD_ALIAS`
 */
export function createCanonicalAliasCheck({ db }: { db: Reader }) {
  return async (room: Room, content: JsonObject): Promise<void> => {
    const current = await room.stateEvent('m.room.canonical_alias', '', room.pending.state)
    const known = new Set([canonicalAliasOf(current), ...altAliasesOf(current)])
    const added = aliasesIn(content).filter((alias) => !known.has(alias))
    if (added.length === 0) return
    const rows = await getAliases(db, added)
    const leading = new Set(rows.filter((row) => row.room_nid === room.nid).map((row) => row.alias))
    const bad = added.find((alias) => !leading.has(alias))
    if (bad !== undefined) throw new ProtocolError('M_BAD_ALIAS', `The alias ${bad} does not lead to this room.`)
  }
}

/** The content of `m.room.canonical_alias` without an alias; undefined when it does not contain it. */
export function withoutAlias(content: JsonObject, alias: RoomAlias): JsonObject | undefined {
  const event = { content }
  const alternatives = altAliasesOf(event)
  const isCanonical = canonicalAliasOf(event) === alias
  if (!isCanonical && !alternatives.includes(alias)) return undefined
  const { alias: canonical, alt_aliases: _, ...others } = content
  const left = alternatives.filter((one) => one !== alias)
  return {
    ...others,
    ...(isCanonical || canonical === undefined ? {} : { alias: canonical }),
    ...(left.length === 0 ? {} : { alt_aliases: left }),
  }
}
