import { Type } from '../../core/shapes.ts'

/** Parameters of every list that comes in pages; `from` is `next_token` or `next_batch` of the page before. */
export const PageQuery = {
  from: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  dir: Type.Optional(Type.Unsafe<'f' | 'b'>({ type: 'string', enum: ['f', 'b'] })),
} as const
