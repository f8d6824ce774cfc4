/** Archives in the format of POSIX.1 (ustar): each file is a header of 512 bytes, and its bytes, filled up to a multiple of 512. */

const BLOCK = 512
const MAX_NAME_BYTES = 100
const NAME = /^[\w./-]+$/

/** The header of a file. @throws Error for a name that does not fit, and for a size of 8 GiB or more */
export function tarHeader(name: string, bytes: number, modifiedAtMs: number): Buffer {
  if (!NAME.test(name) || name.length > MAX_NAME_BYTES || bytes >= 8 ** 11) throw new Error('not a file for an archive')
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number) => `${Math.floor(value).toString(8).padStart(digits, '0')}\0`
  header.write(name, 0, 'latin1')
  header.write(octal(0o600, 7), 100, 'latin1')
  header.write(octal(0, 7), 108, 'latin1')
  header.write(octal(0, 7), 116, 'latin1')
  header.write(octal(bytes, 11), 124, 'latin1')
  header.write(octal(modifiedAtMs / 1000, 11), 136, 'latin1')
  header.write('        0', 148, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

/** What follows the bytes of a file. */
export function tarPadding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK)
}

/** The end of an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK)
