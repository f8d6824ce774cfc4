import { serverOf, splitServerName } from '../core/ids.ts'
import { isObject, type JsonValue, readJson } from '../core/json.ts'
import type { Dialect } from '../core/paths.ts'
import type { GuardedClient } from './http.ts'
import { MAX_WELL_KNOWN_BYTES, MAX_WELL_KNOWN_REDIRECTS } from './limits.ts'

/**
 * What a client must do after discovery by a user id (client-server API, "Server discovery"): continue; ask the user as if there had been no
 * discovery; tell the user about the failure, and ask; tell the user, and stop.
 */
export type ClientDiscovery =
  | { readonly action: 'SUCCESS'; readonly homeserver: string; readonly identityServer: string | undefined }
  | { readonly action: 'IGNORE' | 'FAIL_PROMPT' | 'FAIL_ERROR'; readonly reason: string }

const TIMEOUT_MS = 10_000

class Outcome extends Error {
  readonly action: 'IGNORE' | 'FAIL_PROMPT' | 'FAIL_ERROR'

  constructor(action: Outcome['action'], reason: string) {
    super(reason)
    this.action = action
  }
}

/** The host for the discovery of a user id or a server name. Undefined for any other text. */
export function discoveryHost(userOrServer: string): string | undefined {
  const server = userOrServer.startsWith('@') ? serverOf(userOrServer) : userOrServer
  return server === undefined ? undefined : splitServerName(server)?.host
}

/** @param userOrServer `@alice:example.org`, or a server name */
export async function discoverAsClient(
  userOrServer: string,
  { client, dialect }: { readonly client: GuardedClient; readonly dialect: Dialect },
): Promise<ClientDiscovery> {
  const get = (url: string) =>
    client.request({
      method: 'GET',
      url,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_WELL_KNOWN_BYTES,
      redirects: MAX_WELL_KNOWN_REDIRECTS,
    })

  async function wellKnown(host: string): Promise<JsonValue> {
    const url = `https://${host}/.well-known/${dialect}/client`
    const answer = await get(url)
    if (!answer.ok) throw new Outcome('FAIL_PROMPT', `${url} does not answer: ${answer.detail}`)
    if (answer.status === 404) throw new Outcome('IGNORE', `${url} is not there`)
    if (answer.status !== 200) throw new Outcome('FAIL_PROMPT', `${url} answers ${answer.status}`)
    if (answer.body.length === 0) throw new Outcome('FAIL_PROMPT', `${url} is empty`)
    return parse(answer.body) ?? fail('FAIL_PROMPT', `${url} is not JSON`)
  }

  async function check(path: string, isValid: (body: JsonValue | undefined) => boolean): Promise<void> {
    const answer = await get(path)
    if (!answer.ok) throw new Outcome('FAIL_ERROR', `${path} does not answer: ${answer.detail}`)
    if (answer.status !== 200) throw new Outcome('FAIL_ERROR', `${path} answers ${answer.status}`)
    if (!isValid(parse(answer.body))) throw new Outcome('FAIL_ERROR', `${path} does not answer what it should`)
  }

  async function find(): Promise<ClientDiscovery> {
    const host = discoveryHost(userOrServer) ?? fail('FAIL_PROMPT', `"${userOrServer}" names no server`)
    const found = await wellKnown(host)
    const section = (name: string) => (isObject(found) ? found[name] : undefined)
    const homeserver = baseUrlIn(section('m.homeserver')) ?? fail('FAIL_PROMPT', 'm.homeserver has no base_url')
    requireUrl(homeserver, 'm.homeserver')
    await check(`${homeserver}/_${dialect}/client/versions`, hasVersions)
    if (section('m.identity_server') === undefined) return { action: 'SUCCESS', homeserver, identityServer: undefined }
    // The published specification is more lenient here than the `_proto` dialect.
    const lacking = dialect === 'proto' ? 'FAIL_ERROR' : 'FAIL_PROMPT'
    const identityServer = baseUrlIn(section('m.identity_server')) ?? fail(lacking, 'm.identity_server has no base_url')
    requireUrl(identityServer, 'm.identity_server')
    await check(`${identityServer}/_${dialect}/identity/v2`, isObject)
    return { action: 'SUCCESS', homeserver, identityServer }
  }

  try {
    return await find()
  } catch (error) {
    if (error instanceof Outcome) return { action: error.action, reason: error.message }
    throw error
  }
}

function fail(action: Outcome['action'], reason: string): never {
  throw new Outcome(action, reason)
}

function parse(body: Buffer): JsonValue | undefined {
  try {
    return readJson(body).value
  } catch {
    return undefined
  }
}

/** Without slashes at its end. */
function baseUrlIn(section: JsonValue | undefined): string | undefined {
  const url = isObject(section) ? section.base_url : undefined
  return typeof url === 'string' ? url.replace(/\/+$/, '') : undefined
}

function requireUrl(text: string, section: string): void {
  const isUrl = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  if (!isUrl) throw new Outcome('FAIL_ERROR', `the base_url of ${section} is no URL: ${text.slice(0, 200)}`)
}

function hasVersions(body: JsonValue | undefined): boolean {
  const versions = isObject(body) ? body.versions : undefined
  return Array.isArray(versions) && versions.length > 0 && versions.every((version) => typeof version === 'string')
}
