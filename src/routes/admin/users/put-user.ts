import { ProtocolError } from '../../../core/errors.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Medium } from '../../../core/threepid.ts'
import type { UserWish } from '../../../domain/admin/user-editing.ts'
import { endpoint, rawReply } from '../../../http/endpoint.ts'

const MaybeText = Type.Optional(Type.Union([Type.String(), Type.Null()]))

const Body = Type.Object({
  password: MaybeText,
  logout_devices: Type.Optional(Type.Boolean()),
  displayname: MaybeText,
  avatar_url: MaybeText,
  threepids: Type.Optional(
    Type.Array(
      Type.Object({
        medium: Type.Unsafe<Medium>({ type: 'string', enum: ['email', 'msisdn'] }),
        address: Type.String(),
      }),
    ),
  ),
  external_ids: Type.Optional(Type.Array(Type.Object({ auth_provider: Type.String(), external_id: Type.String() }))),
  admin: Type.Optional(Type.Boolean()),
  deactivated: Type.Optional(Type.Boolean()),
  user_type: MaybeText,
  locked: Type.Optional(Type.Boolean()),
})

function wishOf(body: Static<typeof Body>): UserWish {
  if (typeof body.user_type === 'string') {
    throw new ProtocolError('M_INVALID_PARAM', 'This server knows no types of users.')
  }
  return {
    password: body.password ?? undefined,
    logoutDevices: body.logout_devices ?? true,
    displayName: body.displayname ?? undefined,
    avatarUrl: body.avatar_url ?? undefined,
    isAdmin: body.admin,
    isLocked: body.locked,
    isReactivated: body.deactivated === false,
    threepids: body.threepids,
    externalIds: body.external_ids,
  }
}

export const putUser = endpoint(
  'PUT /_synapse/admin/v2/users/{userId}',
  { auth: 'admin', grave: true, body: Body },
  async ({ requester, params, body }, { admin }) => {
    const wish = wishOf(body)
    if (body.deactivated && body.locked) {
      throw new ProtocolError('M_INVALID_PARAM', 'An account is deactivated or locked, and not both.')
    }
    if (body.deactivated) {
      await admin.users.deactivate(params.userId, false)
      return admin.users.get(params.userId)
    }
    const isNew = await admin.userEditing.put(requester, params.userId, wish)
    return rawReply({ status: isNew ? 201 : 200, body: JSON.stringify(await admin.users.get(params.userId)) })
  },
)
