import { Type } from '../../core/shapes.ts'

/** Parameters of every list that comes in pages; `from` is `next_token` or `next_batch` of the page before. */
export const PageQuery = {
  from: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  dir: Type.Optional(Type.Unsafe<'f' | 'b'>({ type: 'string', enum: ['f', 'b'] })),
} as const

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000

/** A page of at most a thousand. */
export function pageOf({
  from = 0,
  limit = DEFAULT_LIMIT,
  dir = 'f',
}: {
  readonly from?: number
  readonly limit?: number
  readonly dir?: 'f' | 'b'
}) {
  return { from, limit: Math.min(limit, MAX_LIMIT), isDescending: dir === 'b' }
}
