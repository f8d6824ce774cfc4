export type ThumbnailMethod = 'crop' | 'scale'

/** The size of a thumbnail: it fits within these bounds, and with `crop` it has exactly this aspect ratio. */
export interface ThumbnailSize {
  readonly width: number
  readonly height: number
  readonly method: ThumbnailMethod
}

/** The sizes in the specification, and twice the largest for high-resolution screens (client-server API, "Thumbnails"). */
const BOXES: readonly (readonly [number, number])[] = [
  [32, 32],
  [96, 96],
  [320, 240],
  [640, 480],
  [800, 600],
  [1600, 1200],
]
/** Longer sides of cropped thumbnails. The other side is a number of eighths of it, so that there are few sizes. */
const LONG_SIDES = [32, 96, 320, 640, 800, 1600]
const STEPS = 8

/**
 * The size to make for a wish: the smallest known size that is at least as large, or else the largest.
 *
 * @param wish in pixels, both at least 1
 */
export function thumbnailSizeFor({ width, height, method }: ThumbnailSize): ThumbnailSize {
  if (method === 'scale') {
    const [w, h] = BOXES.find(([w, h]) => w >= width && h >= height) ?? (BOXES.at(-1) as readonly [number, number])
    return { width: w, height: h, method }
  }
  const wanted = Math.max(width, height)
  const long = LONG_SIDES.find((side) => side >= wanted) ?? (LONG_SIDES.at(-1) as number)
  const short = (Math.ceil((Math.min(width, height) / wanted) * STEPS) * long) / STEPS
  return width >= height ? { width: long, height: short, method } : { width: short, height: long, method }
}
