import type { UserId } from '../../core/ids.ts'
import { Type } from '../../core/shapes.ts'

/** The body of operations on one's own membership. */
export const ReasonBody = Type.Object({ reason: Type.Optional(Type.String()) })

/** The body of operations on the membership of another. */
export const TargetBody = Type.Object({
  user_id: Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }),
  reason: Type.Optional(Type.String()),
})
