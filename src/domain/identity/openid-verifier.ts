import type { ServerName } from '../../core/ids.ts'

/** Verifies an OpenID token with another homeserver. */
export interface OpenIdVerifier {
  /**
   * The server's `sub`, unchecked; undefined if it does not know the token or sends none.
   * @throws ProtocolError `M_UNKNOWN` (502) if the server cannot be reached
   */
  subjectOf(server: ServerName, accessToken: string): Promise<string | undefined>
}
