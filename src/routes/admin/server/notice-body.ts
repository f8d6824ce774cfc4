import type { UserId } from '../../../core/ids.ts'
import type { JsonOffence } from '../../../core/json.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { Notice } from '../../../domain/admin/server-notices.ts'
import { AnyObject } from '../../../http/endpoint.ts'

export const NoticeBody = Type.Object({
  user_id: Type.Unsafe<UserId>({ type: 'string', format: 'user-id' }),
  type: Type.Optional(Type.String({ minLength: 1 })),
  state_key: Type.Optional(Type.String()),
  content: AnyObject,
})

export function noticeOf(body: Static<typeof NoticeBody>, offence: JsonOffence | undefined): Notice {
  const { user_id: userId, type = 'm.room.message', state_key: stateKey, content } = body
  return { userId, type, stateKey, sent: { content, offence } }
}
