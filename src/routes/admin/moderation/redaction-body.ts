import type { RoomId } from '../../../core/ids.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Operator } from '../../../domain/admin/operator.ts'
import {
  MAX_REDACTION_LIMIT,
  MAX_REDACTION_REASON_CHARS,
  MAX_REDACTION_ROOMS,
  REDACTION_LIMIT,
} from '../../../domain/limits/moderation.ts'
import { checkText } from '../../../domain/text.ts'

const Time = Type.Optional(Type.Integer({ minimum: 0 }))

/** What is to be redacted of a user. */
export const RedactionBody = Type.Object({
  rooms: Type.Optional(
    Type.Array(Type.Unsafe<RoomId>({ type: 'string', format: 'room-id' }), { maxItems: MAX_REDACTION_ROOMS }),
  ),
  reason: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_REDACTION_LIMIT })),
  use_admin: Type.Optional(Type.Boolean()),
  before_ts: Time,
  after_ts: Time,
})

export function redactionOf(by: Operator, body: Static<typeof RedactionBody>) {
  const { rooms = [], reason, limit = REDACTION_LIMIT, use_admin: asOperator = false, before_ts, after_ts } = body
  checkText('reason', reason ?? '', MAX_REDACTION_REASON_CHARS)
  return {
    by: by.requester?.userId ?? null,
    reason: reason ?? null,
    limit,
    asOperator,
    before: before_ts ?? null,
    after: after_ts ?? null,
    rooms: rooms.length === 0 ? null : rooms,
  }
}
