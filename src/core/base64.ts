/** Standard alphabet without padding (appendices, "Unpadded Base64"). */
export function encodeBase64(bytes: Uint8Array): string {
  const padded = asBuffer(bytes).toString('base64')
  const padding = padded.indexOf('=', padded.length - 2)
  return padding === -1 ? padded : padded.slice(0, padding)
}

/** URL-safe alphabet without padding: `-` and `_` for `+` and `/`. */
export function encodeBase64Url(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64url')
}

/** Decodes either alphabet, padded or not, as the specification advises for data of others. Undefined if it is not base64. */
export function decodeBase64(text: string): Buffer | undefined {
  const unpadded = text.replace(/={1,2}$/, '')
  const isBase64 = unpadded.length % 4 !== 1 && /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)$/.test(unpadded)
  return isBase64 ? Buffer.from(unpadded, 'base64') : undefined
}

/** Decodes only what {@link encodeBase64} writes: standard alphabet, no padding, no stray bits at the end. */
export function decodeBase64Strict(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return encodeBase64(bytes) === text ? bytes : undefined
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
