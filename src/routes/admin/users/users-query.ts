import { type Static, Type } from '../../../core/shapes.ts'
import { checkText } from '../../../domain/text.ts'
import { PageQuery } from '../page-query.ts'

const ORDERS = [
  'name',
  'is_guest',
  'admin',
  'deactivated',
  'displayname',
  'avatar_url',
  'creation_ts',
  'last_seen_ts',
  'locked',
  'suspended',
  'shadow_banned',
] as const

const Order = Type.Unsafe<(typeof ORDERS)[number]>({ type: 'string', enum: ORDERS })

export const UsersQuery = Type.Object({
  ...PageQuery,
  user_id: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  guests: Type.Optional(Type.Boolean()),
  admins: Type.Optional(Type.Boolean()),
  deactivated: Type.Optional(Type.Boolean()),
  locked: Type.Optional(Type.Boolean()),
  suspended: Type.Optional(Type.Boolean()),
  shadow_banned: Type.Optional(Type.Boolean()),
  order_by: Type.Optional(Order),
})

const MAX_PART_CHARS = 512

export function wantedUsers(query: Static<typeof UsersQuery>) {
  const { user_id, name, guests, admins, locked, suspended, shadow_banned } = query
  checkText('user_id', user_id ?? '', MAX_PART_CHARS)
  checkText('name', name ?? '', MAX_PART_CHARS)
  return {
    // `name` searches the user id and the display name, so it replaces `user_id`.
    userId: name === undefined ? user_id : undefined,
    name,
    isGuest: guests === false ? false : undefined,
    isAdmin: admins,
    isSuspended: suspended,
    isShadowBanned: shadow_banned,
    // `locked=true` includes locked accounts; otherwise they are left out.
    isLocked: locked === true ? undefined : false,
  }
}
