import { ProtocolError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../core/json.ts'
import { type Shape, type Static, Type } from '../../../core/shapes.ts'
import type { PresenceState } from '../../../domain/sync/presence.ts'

const Texts = Type.Array(Type.String())
const RoomTypes = Type.Array(Type.Union([Type.String(), Type.Null()]))

/** What lists filter by. The two texts name the filter for invitations differently. */
export const SlidingFilters = Type.Object({
  is_dm: Type.Optional(Type.Boolean()),
  is_encrypted: Type.Optional(Type.Boolean()),
  is_invited: Type.Optional(Type.Boolean()),
  is_invite: Type.Optional(Type.Boolean()),
  spaces: Type.Optional(Texts),
  room_types: Type.Optional(RoomTypes),
  not_room_types: Type.Optional(RoomTypes),
  tags: Type.Optional(Texts),
  not_tags: Type.Optional(Texts),
  room_name_like: Type.Optional(Type.String()),
})

/** An object with values of one shape under any keys. */
export function ByKey<S extends Shape>(shape: S) {
  return Type.Unsafe<Record<string, Static<S>>>({ type: 'object', additionalProperties: shape })
}

export const SlidingExtensionBodies = Type.Unsafe<Record<string, JsonObject>>({
  type: 'object',
  additionalProperties: { type: 'object' },
})

/** @throws ProtocolError `M_INVALID_PARAM` for another text */
export function presenceOf(text = 'online'): PresenceState {
  if (text === 'online' || text === 'offline' || text === 'unavailable') return text
  throw new ProtocolError('M_INVALID_PARAM', '`set_presence` is `online`, `offline` or `unavailable`.')
}

/** The keys of lists are opaque identifiers. */
const KEY = /^[0-9A-Za-z._~-]{1,255}$/

/** @throws ProtocolError `M_INVALID_PARAM` if one of them is none */
export function mustBeKeys(lists: object = {}): void {
  if (Object.keys(lists).some((key) => !KEY.test(key)))
    throw new ProtocolError('M_INVALID_PARAM', 'The key of a list is 1 to 255 of `a-z A-Z 0-9 . _ ~ -`.')
}
