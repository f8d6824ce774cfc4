import type { ServerName } from '../../core/ids.ts'

/** Another server, identified by the signature of its request. */
export interface PeerRequester {
  readonly server: ServerName
}
