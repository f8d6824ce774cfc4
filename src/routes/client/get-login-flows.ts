import { endpoint } from '../../http/endpoint.ts'

export const getLoginFlows = endpoint('GET C/login', { auth: 'none', limited: 'other' }, (_request, { config }) => {
  const { login_tokens, sso } = config
  const providers = sso.providers.map(({ id, name, icon, brand }) => ({ id, name, icon, brand }))
  const tokenFlow = { type: 'm.login.token', ...(login_tokens.from_session && { get_login_token: true }) }
  return {
    flows: [
      { type: 'm.login.password' },
      ...(login_tokens.from_session || providers.length > 0 ? [tokenFlow] : []),
      ...(providers.length > 0 ? [{ type: 'm.login.sso', identity_providers: providers }] : []),
    ],
  }
})
