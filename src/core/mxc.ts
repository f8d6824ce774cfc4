import { isServerName, type ServerName } from './ids.ts'

/** The parts of an `mxc://` URI: a server, and a file there. */
export interface Mxc {
  readonly server: ServerName
  readonly mediaId: string
}

/**
 * A media id (client-server API, "Matrix Content (MXC) URIs"). Its characters have no special meaning in a path or a URL.
 */
const MEDIA_ID = /^[A-Za-z0-9_-]{1,255}$/

export function isMediaId(value: unknown): value is string {
  return typeof value === 'string' && MEDIA_ID.test(value)
}

/** Reads `mxc://server/media-id`; undefined for any other text. */
export function readMxc(uri: unknown): Mxc | undefined {
  if (typeof uri !== 'string' || !uri.startsWith('mxc://')) return undefined
  const slash = uri.indexOf('/', 6)
  const server = uri.slice(6, slash)
  const mediaId = uri.slice(slash + 1)
  // The grammar of server names allows names that have a meaning in a path, such as `..`.
  const isServer = isServerName(server) && !server.startsWith('.') && !server.includes('..')
  return slash !== -1 && isServer && isMediaId(mediaId) ? { server, mediaId } : undefined
}

export function writeMxc({ server, mediaId }: Mxc): string {
  return `mxc://${server}/${mediaId}`
}
