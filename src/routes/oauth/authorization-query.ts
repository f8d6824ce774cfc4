/** Parameters of OpenID Connect: some clients send them, and the authorisation server refuses them without the scope `openid`. */
const OF_OPENID = ['acr_values', 'claims', 'claims_locales', 'id_token_hint', 'max_age', 'nonce']
const RESPONSE_MODES = ['query', 'fragment']
/** A mode that nobody knows. */
const NO_MODE = 'unsupported'

/** Leaves out scopes of other interfaces, such as `openid`: they are not granted (RFC 6749, section 3.3). */
export function matrixScope(parameters: URLSearchParams): void {
  const [scope, ...others] = parameters.getAll('scope')
  if (scope === undefined || others.length > 0) return
  const ours = scope.split(' ').filter((token) => token.startsWith('urn:matrix:'))
  if (ours.length > 0) parameters.set('scope', ours.join(' '))
}

/** The query of an authorisation request as the authorisation server takes it. */
export function authorizationQuery(uri: string): URLSearchParams {
  const parameters = new URLSearchParams(uri.split('?').slice(1).join('?'))
  for (const name of OF_OPENID) parameters.delete(name)
  matrixScope(parameters)
  const mode = parameters.get('response_mode')
  if (mode !== null && !RESPONSE_MODES.includes(mode)) parameters.set('response_mode', NO_MODE)
  return parameters
}
