import type { ThumbnailMethod } from '../core/media/thumbnail-size.ts'
import { Type } from '../core/shapes.ts'
import type { ThumbnailWish } from '../domain/media/thumbnails.ts'

export const ThumbnailQuery = {
  width: Type.Integer({ minimum: 1 }),
  height: Type.Integer({ minimum: 1 }),
  method: Type.Optional(Type.Unsafe<ThumbnailMethod>({ type: 'string', enum: ['crop', 'scale'] })),
  animated: Type.Optional(Type.Boolean()),
} as const

export function thumbnailWishOf(query: {
  readonly width: number
  readonly height: number
  readonly method?: ThumbnailMethod
  readonly animated?: boolean
}): ThumbnailWish {
  const { width, height, method = 'scale', animated: isAnimated = false } = query
  return { width, height, method, isAnimated }
}
