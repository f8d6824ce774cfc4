import type { ServerName } from '../../core/ids.ts'

/** Asks another homeserver whom an OpenID token stands for. */
export interface OpenIdVerifier {
  /**
   * What the server gives as `sub`, unchecked; undefined when it does not know the token or gives none.
   * @throws ProtocolError `M_UNKNOWN` (502) when the server cannot be asked
   */
  subjectOf(server: ServerName, accessToken: string): Promise<string | undefined>
}
