import type { UserId } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { MAX_CROWD } from '../../../domain/limits/moderation.ts'
import type { Crowd } from '../../../domain/moderation/crowds.ts'
import { checkText } from '../../../domain/text.ts'

const Time = Type.Optional(Type.Integer({ minimum: 0 }))

/** Which accounts an act concerns: those that meet all criteria. */
export const CrowdShape = Type.Object({
  user_ids: Type.Optional(
    Type.Array(Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }), { maxItems: MAX_CROWD }),
  ),
  name: Type.Optional(Type.String({ minLength: 1 })),
  registered_after: Time,
  registered_before: Time,
  seen_at: Type.Optional(Type.String({ minLength: 1 })),
})

const MAX_TEXT_CHARS = 255

export function crowdOf(body: Static<typeof CrowdShape>): Crowd {
  checkText('name', body.name ?? '', MAX_TEXT_CHARS)
  checkText('seen_at', body.seen_at ?? '', MAX_TEXT_CHARS)
  return {
    userIds: body.user_ids,
    name: body.name,
    registeredAfter: body.registered_after,
    registeredBefore: body.registered_before,
    seenAt: body.seen_at,
  }
}
