import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'

/** What rooms ask of identity servers, with the token that a user has there. Their errors are passed on. */
export interface AskedIdentityServers {
  /** Who owns an address. */
  lookup(
    server: string,
    accessToken: string,
    threepid: { medium: string; address: string },
  ): Promise<UserId | undefined>
  /** Keeps an invitation for who will own the address. @throws ProtocolError `M_THREEPID_IN_USE` with `mxid` when somebody does */
  storeInvite(server: string, accessToken: string, invitation: JsonObject): Promise<JsonObject>
  /** Whether an identity server stands by a key of its own. @throws Error when it cannot be asked just now */
  isKeyValid(validityUrl: string, publicKey: string): Promise<boolean>
}

const refuse = async (): Promise<never> => {
  throw new ProtocolError('M_SERVER_NOT_TRUSTED', 'No identity server can be asked from here.')
}

/** Of a server that asks none. */
export const NO_IDENTITY_SERVERS: AskedIdentityServers = {
  lookup: refuse,
  storeInvite: refuse,
  isKeyValid: async () => false,
}
