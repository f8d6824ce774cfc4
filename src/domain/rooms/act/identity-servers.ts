import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'

/** The queries of rooms to identity servers, with the token that a user has there. Their errors are passed on. */
export interface AskedIdentityServers {
  /** The owner of an address. */
  lookup(
    server: string,
    accessToken: string,
    threepid: { medium: string; address: string },
  ): Promise<UserId | undefined>
  /** Stores an invitation for a future owner of the address. @throws ProtocolError `M_THREEPID_IN_USE` with `mxid` when it has an owner */
  storeInvite(server: string, accessToken: string, invitation: JsonObject): Promise<JsonObject>
  /** Whether an identity server confirms a key as its own. @throws Error when it cannot be asked now */
  isKeyValid(validityUrl: string, publicKey: string): Promise<boolean>
}

const refuse = async (): Promise<never> => {
  throw new ProtocolError('M_SERVER_NOT_TRUSTED', 'No identity server can be asked from here.')
}

/** For a server without identity servers. */
export const NO_IDENTITY_SERVERS: AskedIdentityServers = {
  lookup: refuse,
  storeInvite: refuse,
  isKeyValid: async () => false,
}
