import { ProtocolError } from '../core/errors.ts'

const MAX_HEAD_BYTES = 8 * 1024
const HEAD_END = Buffer.from('\r\n\r\n')

/** The boundary of a form with a file (RFC 7578), from its content type; undefined for another one. */
export function boundaryOf(contentType: string | undefined): string | undefined {
  const [, quoted, plain] =
    /^multipart\/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType ?? '') ?? []
  return quoted ?? plain
}

/**
 * The content of the one file in a form, as it comes. What follows the file is read and left out.
 *
 * @throws ProtocolError `M_INVALID_PARAM` for what is no such form
 */
export async function* fileInForm(source: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<Buffer> {
  const begin = Buffer.from(`--${boundary}\r\n`)
  const end = Buffer.from(`\r\n--${boundary}`)
  let held: Buffer = Buffer.alloc(0)
  let where: 'head' | 'file' | 'behind' = 'head'
  for await (const chunk of source) {
    if (where === 'behind') continue
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    if (where === 'head') {
      const at = held.indexOf(HEAD_END)
      if (at === -1 && held.length <= MAX_HEAD_BYTES) continue
      if (at === -1 || !held.subarray(0, begin.length).equals(begin)) throw malformed()
      // The end of an empty file begins where its head ends.
      held = held.subarray(at + HEAD_END.length)
      where = 'file'
    }
    const at = held.indexOf(end)
    const whole = at === -1 ? Math.max(0, held.length - end.length) : at
    if (whole > 0) yield held.subarray(0, whole)
    held = held.subarray(whole)
    if (at !== -1) where = 'behind'
  }
  if (where !== 'behind') throw malformed()
}

function malformed(): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', 'The form does not hold a whole file. Choose the file again.')
}
