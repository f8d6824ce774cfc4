/** The kinds of images that are decoded. They are recognised by their first bytes, not by the content type. */
export type ImageType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

export interface ImageHeader {
  readonly type: ImageType
  /** In pixels, as the file states them, before any rotation. */
  readonly width: number
  readonly height: number
}

/** These first bytes of a file contain the image's size, unless the metadata before it is unusually long. */
export const IMAGE_HEADER_BYTES = 256 * 1024

/**
 * Reads type and size of an image without decoding it.
 *
 * @param bytes the first {@link IMAGE_HEADER_BYTES} of a file, or all of it
 * @returns undefined if it is not a JPEG, PNG, GIF or WebP, or its size is not found
 */
export function readImageHeader(bytes: Buffer): ImageHeader | undefined {
  const header = png(bytes) ?? gif(bytes) ?? webp(bytes) ?? jpeg(bytes)
  return header !== undefined && header.width > 0 && header.height > 0 ? header : undefined
}

/** PNG specification, 5.2 and 11.2.2: the signature, then the chunk IHDR. */
function png(bytes: Buffer): ImageHeader | undefined {
  const isPng = bytes.length >= 24 && bytes.readUInt32BE(0) === 0x89504e47 && bytes.readUInt32BE(4) === 0x0d0a1a0a
  if (!isPng || bytes.toString('latin1', 12, 16) !== 'IHDR') return undefined
  return { type: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** GIF89a, 17 and 18: the header, then the logical screen. */
function gif(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 10 || !/^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6))) return undefined
  return { type: 'image/gif', width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
}

/** RFC 9649, 2.4 to 2.7: a RIFF file whose first chunk is one of three. */
function webp(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 30 || bytes.toString('latin1', 0, 4) !== 'RIFF') return undefined
  if (bytes.toString('latin1', 8, 12) !== 'WEBP') return undefined
  const type = 'image/webp'
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { type, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    case 'VP8L': {
      const packed = bytes.readUInt32LE(21)
      return { type, width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8 ':
      return { type, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    default:
      return undefined
  }
}

/** Start-of-frame markers (ISO 10918-1, table B.1): all of C0 to CF but the tables DHT, JPG and DAC. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** ISO 10918-1, B.1 and B.2: segments with their lengths, of which a frame header says the size. */
function jpeg(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 4 || bytes.readUIntBE(0, 3) !== 0xffd8ff) return undefined
  let at = 2
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0
    if (isFrame(marker))
      return { type: 'image/jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    // Fill bytes and some markers have no length. Each step moves forward, whatever the file contains, so the loop ends.
    const isAlone = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    at += isAlone ? (marker === 0xff ? 1 : 2) : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}
