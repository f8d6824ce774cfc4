import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isMedium } from '../../core/threepid.ts'
import type { IdentityServices } from '../identity/identity-services.ts'
import { inviteKeys } from '../identity/invite-keys.ts'
import type { IdentityRequester } from '../identity/requester.ts'
import type { IdentityServer } from './identity-server.ts'

/** The identity service of this process, called without HTTP: the same checks, the same errors. */
export function createOwnIdentityServer(deps: {
  readonly config: Pick<Config, 'server_name' | 'public_base_url' | 'listen' | 'identity'>
  readonly identity: Pick<
    IdentityServices,
    'accounts' | 'terms' | 'lookup' | 'invitations' | 'sessions' | 'bindings' | 'keys'
  >
}): IdentityServer {
  const { config, identity } = deps

  async function requesterOf(accessToken: string): Promise<IdentityRequester> {
    const requester = await identity.accounts.find(accessToken)
    if (requester === undefined) {
      throw new ProtocolError('M_UNAUTHORIZED', 'The access token for the identity server is not known there.')
    }
    await identity.terms.require(requester.userId)
    return requester
  }

  return {
    async lookup(accessToken, threepid) {
      const { userId } = await requesterOf(accessToken)
      return (await identity.lookup.association(threepid, userId))?.mxid
    },
    async storeInvite(accessToken, invite) {
      const requester = await requesterOf(accessToken)
      const look = { brand: undefined, languages: [] }
      const stored = await identity.invitations.store(invite, { requester, who: requester.userId, look })
      const { token, displayName: display_name, publicKey } = stored
      return { token, display_name, public_keys: inviteKeys(config, identity.keys.current.publicKey, publicKey) }
    },
    async requestToken(accessToken, wish, request) {
      const { userId: sender } = await requesterOf(accessToken)
      const by = { ...request, sender }
      if (wish.medium === 'email') return { sid: await identity.sessions.requestEmail(wish.email, by) }
      const { sid, phone } = await identity.sessions.requestMsisdn(wish.country, wish.number, by)
      return { sid, msisdn: phone.msisdn, intl_fmt: phone.international }
    },
    async getValidated3pid(accessToken, proof) {
      await requesterOf(accessToken)
      return identity.sessions.findValidated(proof)
    },
    async bind(accessToken, proof, userId) {
      const { medium, address } = await identity.bindings.bind(proof, userId, await requesterOf(accessToken))
      if (!isMedium(medium)) throw new Error(`a ${medium} was bound`)
      return { medium, address }
    },
    async unbind(threepid, userId) {
      await identity.bindings.unbindFor(config.server_name, threepid, userId)
      return 'success'
    },
  }
}
