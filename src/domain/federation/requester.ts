import type { ServerName } from '../../core/ids.ts'

/** Another server, by the signature of its request. */
export interface PeerRequester {
  readonly server: ServerName
}
