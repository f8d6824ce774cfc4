const BLOCK = 512

/**
 * The header of a file in a tar archive (POSIX `ustar`).
 * @param name letters of ASCII, at most 100 @param at seconds since 1970
 */
export function tarHeader(name: string, bytes: number, at: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  const write = (text: string, offset: number): void => void header.write(text, offset, 'latin1')
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
  if (Buffer.byteLength(name) > 100) throw new Error(`a name in the archive is too long: ${name}`)
  write(name, 0)
  write(`${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100)
  // Eleven octal digits are 8 GiB; larger sizes are written in base 256.
  if (bytes < 8 ** 11) write(`${octal(bytes, 11)}\0`, 124)
  else {
    header.writeBigUInt64BE(BigInt(bytes), 128)
    header[124] = 0x80
  }
  write(`${octal(at, 11)}\0`, 136)
  write(' '.repeat(8), 148)
  write('0', 156)
  write('ustar\x0000', 257)
  write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  )
  return header
}

/** What follows the bytes of a file, so that the next header begins at a block. */
export function tarPadding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK)
}

export const TAR_END = Buffer.alloc(2 * BLOCK)
