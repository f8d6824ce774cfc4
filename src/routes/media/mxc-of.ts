import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'
import { type Mxc, readMxc, writeMxc } from '../../core/mxc.ts'

/** @throws ProtocolError `M_NOT_FOUND` for what cannot be the name of any file */
export function mxcOf({ serverName, mediaId }: { readonly serverName: ServerName; readonly mediaId: string }): Mxc {
  const mxc = readMxc(writeMxc({ server: serverName, mediaId }))
  if (mxc === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such media.')
  return mxc
}
