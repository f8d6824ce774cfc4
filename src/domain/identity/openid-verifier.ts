import { ProtocolError } from '../../core/errors.ts'
import type { ServerName } from '../../core/ids.ts'

/** Asks another homeserver whom an OpenID token stands for. */
export interface OpenIdVerifier {
  /**
   * What the server gives as `sub`, unchecked; undefined when it does not know the token or gives none.
   * @throws ProtocolError `M_UNKNOWN` (502) when the server cannot be asked
   */
  subjectOf(server: ServerName, accessToken: string): Promise<string | undefined>
}

/** Of a server that asks no others. */
export const NO_OTHERS: OpenIdVerifier = {
  async subjectOf(server) {
    throw new ProtocolError('M_UNKNOWN', `The homeserver ${server} cannot be asked from here.`, { status: 502 })
  },
}
