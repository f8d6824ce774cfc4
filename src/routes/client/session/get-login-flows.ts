import { ProtocolError } from '../../../core/errors.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { APPSERVICE_TYPE } from './appservice-type.ts'

/** For clients that know OAuth and prefer it, as published and as they knew it before. */
const OAUTH_AWARE = { oauth_aware_preferred: true, 'org.matrix.msc3824.delegated_oidc_compatibility': true }

export const getLoginFlows = endpoint(
  'GET C/login',
  { auth: 'none', limited: 'other' },
  ({ dialect }, { config, appservices, oauth, jwtLogins }) => {
    const { login_tokens, sso } = config
    if (!config.oauth.legacy_login) throw new ProtocolError('M_UNRECOGNIZED', 'Clients sign in by OAuth here.')
    const providers = sso.providers.map(({ id, name, icon, brand }) => ({ id, name, icon, brand }))
    // The interface of the other dialect knows nothing of it.
    const isAware = oauth.isServed && dialect === 'matrix'
    const hasSso = providers.length > 0 || isAware
    const tokenFlow = { type: 'm.login.token', ...(login_tokens.from_session && { get_login_token: true }) }
    const listed = providers.length > 0 && { identity_providers: providers }
    const ssoFlow = { type: 'm.login.sso', ...listed, ...(isAware && OAUTH_AWARE) }
    return {
      flows: [
        { type: 'm.login.password' },
        ...(login_tokens.from_session || hasSso ? [tokenFlow] : []),
        ...(hasSso ? [ssoFlow] : []),
        ...(jwtLogins.isEnabled ? [{ type: 'org.matrix.login.jwt' }] : []),
        ...(appservices.registry.all().length > 0 ? [{ type: APPSERVICE_TYPE }] : []),
      ],
    }
  },
)
