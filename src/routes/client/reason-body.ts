import type { UserId } from '../../core/ids.ts'
import { Type } from '../../core/shapes.ts'
import { AnyObject } from '../../http/endpoint.ts'

const UserIdShape = Type.Unsafe<UserId>({ type: 'string', format: 'user-id' })

/** The body of operations on one's own membership. */
export const ReasonBody = Type.Object({ reason: Type.Optional(Type.String()) })

/** The body of joining: an identity server may vouch for an address of the user that was invited. */
export const JoinBody = Type.Object({
  reason: Type.Optional(Type.String()),
  third_party_signed: Type.Optional(
    Type.Object({ sender: UserIdShape, mxid: UserIdShape, token: Type.String(), signatures: AnyObject }),
  ),
})

/** The body of operations on the membership of another. */
export const TargetBody = Type.Object({
  user_id: UserIdShape,
  reason: Type.Optional(Type.String()),
})
