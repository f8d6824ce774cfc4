import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import { oneLine } from '../template.ts'

/** What a client says about itself at its registration, as far as it is kept (client-server API, "Client registration"). */
export interface ClientMetadata {
  readonly application_type: 'web' | 'native'
  readonly client_name?: string
  readonly client_uri: string
  readonly logo_uri?: string
  readonly tos_uri?: string
  readonly policy_uri?: string
  readonly redirect_uris: readonly string[]
  readonly response_types: readonly string[]
  readonly grant_types: readonly string[]
  readonly token_endpoint_auth_method: 'none'
}

/** An error of RFC 7591, section 3.2.2. */
export class ClientMetadataError extends Error {
  readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata'

  constructor(code: ClientMetadataError['code'], message: string) {
    super(message)
    this.name = 'ClientMetadataError'
    this.code = code
  }
}

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
export const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_GRANT] as const

const MAX_URI_CHARS = 2_000
const MAX_NAME_CHARS = 100
const MAX_REDIRECT_URIS = 16
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]']
/** The characters of RFC 3986 without `#`: nothing that a parser repairs. */
const URI_CHARS = /^[\w\-.~:/?[\]@!$&'()*+,;=%]+$/
const DOMAIN = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])?$/

const metadataError = (message: string): never => {
  throw new ClientMetadataError('invalid_client_metadata', message)
}
const redirectError = (uri: string, message: string): never => {
  throw new ClientMetadataError('invalid_redirect_uri', `${oneLine(uri).slice(0, 200)}: ${message}`)
}

/** An https address of a domain, written as a parser would write it; undefined if the text is something else. */
function httpsUrl(text: JsonValue | undefined): URL | undefined {
  if (typeof text !== 'string' || text.length > MAX_URI_CHARS || !URI_CHARS.test(text)) return undefined
  if (!text.startsWith('https://') || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const isAsWritten = url.href === text || url.href === `${text}/` || url.href.replace('/?', '?') === text
  return isAsWritten && url.username === '' && url.password === '' && DOMAIN.test(url.hostname) ? url : undefined
}

/** Whether a host is a domain or one of its subdomains. */
const isWithin = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`)

function checkHttps(uri: string, domain: string): void {
  const url = httpsUrl(uri) ?? redirectError(uri, 'this is no https address of a domain in plain notation')
  if (!isWithin(url.hostname, domain)) redirectError(uri, `the host is not that of client_uri, or below it (${domain})`)
}

/** `com.example.app:/callback` of `https://example.com`: the scheme begins with the host's labels, reversed. */
function checkPrivateScheme(uri: string, domain: string): void {
  const scheme = uri.slice(0, uri.indexOf(':'))
  const base = domain.split('.').reverse().join('.')
  if (scheme !== base && !scheme.startsWith(`${base}.`)) redirectError(uri, `the scheme must begin with ${base}`)
  if (uri.startsWith(`${scheme}://`)) redirectError(uri, 'an address of a private scheme has no authority, so no //')
}

/** `http://localhost/callback`. A port is accepted, and not compared later: the app takes any free one. */
function checkLoopback(uri: string): void {
  const { hostname, username, password } = new URL(uri)
  const isPlain = username === '' && password === '' && LOOPBACK_HOSTS.some((host) => uri.startsWith(`http://${host}`))
  if (!isPlain || !LOOPBACK_HOSTS.includes(hostname)) {
    redirectError(uri, 'http is for localhost, 127.0.0.1 and [::1] only; use https')
  }
}

function checkRedirect(uri: string, type: ClientMetadata['application_type'], domain: string): void {
  if (uri.includes('#')) redirectError(uri, 'it must not have a fragment')
  if (uri.length > MAX_URI_CHARS || !URI_CHARS.test(uri) || !URL.canParse(uri)) redirectError(uri, 'this is no address')
  if (/%2e|\/\.{1,2}(?:[/?]|$)/i.test(uri)) redirectError(uri, 'the path must not have segments of dots')
  if (uri.startsWith('https:')) checkHttps(uri, domain)
  else if (type === 'web') redirectError(uri, 'a web client needs https')
  else if (uri.startsWith('http:')) checkLoopback(uri)
  else checkPrivateScheme(uri, domain)
}

function redirectsOf(value: JsonValue | undefined): string[] {
  if (value === undefined) return []
  const isList = Array.isArray(value) && value.length <= MAX_REDIRECT_URIS
  if (isList && value.every((each): each is string => typeof each === 'string')) return [...new Set(value)]
  throw new ClientMetadataError('invalid_redirect_uri', `redirect_uris is a list of up to ${MAX_REDIRECT_URIS} texts.`)
}

function grantTypesOf(body: JsonObject): string[] {
  const { grant_types: asked = ['authorization_code'] } = body
  if (!Array.isArray(asked)) return metadataError('grant_types is a list.')
  const known = GRANT_TYPES.filter((each) => asked.includes(each))
  if (!known.some((each) => each !== 'refresh_token')) metadataError('None of these grant types is known here.')
  // Every session is refreshed.
  return known.includes('refresh_token') ? known : [...known, 'refresh_token']
}

function nameOf(value: JsonValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined
  const name = oneLine(value.normalize('NFKC')).replace(/\p{Cf}/gu, '')
  return [...name].slice(0, MAX_NAME_CHARS).join('') || undefined
}

/** The addresses that are shown as links. One that belongs to another domain is dropped. */
function linksOf(body: JsonObject, domain: string): Partial<Record<'logo_uri' | 'tos_uri' | 'policy_uri', string>> {
  const kept = (['logo_uri', 'tos_uri', 'policy_uri'] as const).flatMap((name) => {
    const url = httpsUrl(body[name])
    return url !== undefined && isWithin(url.hostname, domain) ? [[name, body[name]] as const] : []
  })
  return Object.fromEntries(kept)
}

/**
 * Checks what a client says about itself, and gives what is kept of it. Unknown keys, grant types and response types are dropped.
 * @throws ClientMetadataError
 */
export function readClientMetadata(body: JsonValue): ClientMetadata {
  if (!isObject(body)) return metadataError('The body is a JSON object.')
  const { application_type: type = 'web', token_endpoint_auth_method: method = 'none' } = body
  if (type !== 'web' && type !== 'native') return metadataError('application_type is web or native.')
  if (method !== 'none') return metadataError('Clients here have no secret: token_endpoint_auth_method is none.')
  const client_uri = body.client_uri as string
  const { hostname: domain } = httpsUrl(client_uri) ?? metadataError('client_uri must be an https address of a domain.')
  const grant_types = grantTypesOf(body)
  const hasCode = grant_types.includes('authorization_code')
  const redirect_uris = redirectsOf(body.redirect_uris)
  for (const uri of redirect_uris) checkRedirect(uri, type, domain)
  const isForDevices = grant_types.includes(DEVICE_GRANT)
  if (hasCode && redirect_uris.length === 0 && !isForDevices) {
    throw new ClientMetadataError('invalid_redirect_uri', 'redirect_uris must name where the client gets its answers.')
  }
  const usesCode = hasCode && redirect_uris.length > 0
  const client_name = nameOf(body.client_name)
  return {
    application_type: type,
    ...(client_name !== undefined && { client_name }),
    client_uri,
    ...linksOf(body, domain),
    redirect_uris,
    response_types: usesCode ? ['code'] : [],
    grant_types: grant_types.filter((each) => usesCode || each !== 'authorization_code'),
    token_endpoint_auth_method: 'none',
  }
}

/** The host by which people recognise a client. */
export const hostOf = (metadata: Pick<ClientMetadata, 'client_uri'>): string => new URL(metadata.client_uri).host
