import { endpoint } from '../../../http/endpoint.ts'
import { APPSERVICE_TYPE } from './appservice-type.ts'

export const getLoginFlows = endpoint(
  'GET C/login',
  { auth: 'none', limited: 'other' },
  (_request, { config, appservices, jwtLogins }) => {
    const { login_tokens, sso } = config
    const providers = sso.providers.map(({ id, name, icon, brand }) => ({ id, name, icon, brand }))
    const tokenFlow = { type: 'm.login.token', ...(login_tokens.from_session && { get_login_token: true }) }
    return {
      flows: [
        { type: 'm.login.password' },
        ...(login_tokens.from_session || providers.length > 0 ? [tokenFlow] : []),
        ...(providers.length > 0 ? [{ type: 'm.login.sso', identity_providers: providers }] : []),
        ...(jwtLogins.isEnabled ? [{ type: 'org.matrix.login.jwt' }] : []),
        ...(appservices.registry.all().length > 0 ? [{ type: APPSERVICE_TYPE }] : []),
      ],
    }
  },
)
