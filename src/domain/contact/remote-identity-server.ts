import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ERROR_STATUS, type Errcode, ProtocolError } from '../../core/errors.ts'
import { isUserId, type ServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../core/json.ts'
import { lookupHash, plainLookupEntry } from '../../core/lookup-hash.ts'
import { signedText } from '../../core/signing/json-signature.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { isMedium, normaliseAddress } from '../../core/threepid.ts'
import { type IdentityAnswer, type IdentityClient, IdentityServerError } from '../../outbound/identity.ts'
import type { IdentityServer, PublicKeyOfInvite } from './identity-server.ts'

/** Characters that a header may contain. */
const TOKEN = /^[\x21-\x7e]{1,4096}$/

/** A request to an identity server, without its authorisation. */
type Request = Pick<Parameters<IdentityClient['call']>[0], 'method' | 'path' | 'body'>

/** A remote identity server, over HTTP. Its answers are checked before use. */
export function createRemoteIdentityServer(
  deps: {
    readonly config: Pick<Config, 'server_name'>
    readonly client: IdentityClient
    readonly signingKey: SigningKey
    readonly log: Logger
  },
  server: ServerName,
): IdentityServer {
  const { config, client, signingKey, log } = deps

  async function call(request: Request, authorization: (uri: string) => string): Promise<IdentityAnswer> {
    try {
      return await client.call({ server, ...request, authorization })
    } catch (error) {
      if (!(error instanceof IdentityServerError)) throw error
      log.info({ id_server: server, reason: error.message }, 'an identity server cannot be asked')
      throw new ProtocolError('M_UNKNOWN', `The identity server ${server} does not answer. Try again later.`, {
        status: error.isTimeout ? 504 : 502,
      })
    }
  }

  async function ask(accessToken: string, request: Request): Promise<JsonObject> {
    if (!TOKEN.test(accessToken)) {
      throw new ProtocolError('M_INVALID_PARAM', "Key 'id_access_token' must be letters, digits and signs of ASCII.")
    }
    const { status, body } = await call(request, () => `Bearer ${accessToken}`)
    if (status < 200 || status > 299) throw passedOn(server, status, body)
    if (body === undefined) throw nonsense()
    return body
  }

  function nonsense(): ProtocolError {
    return new ProtocolError('M_UNKNOWN', `The identity server ${server} answered what it should not.`, { status: 502 })
  }

  /** The hash details are requested each time: a server may change its pepper at any time. */
  async function lookupOnce(accessToken: string, medium: string, address: string): Promise<JsonValue | undefined> {
    const { algorithms, lookup_pepper: pepper } = await ask(accessToken, { method: 'GET', path: '/hash_details' })
    if (!Array.isArray(algorithms) || typeof pepper !== 'string' || !isMedium(medium)) throw nonsense()
    const algorithm = algorithms.includes('sha256') ? 'sha256' : 'none'
    if (!algorithms.includes(algorithm)) {
      throw new ProtocolError('M_UNKNOWN', `The identity server ${server} wants addresses in a form not known here.`, {
        status: 502,
      })
    }
    const entry = algorithm === 'sha256' ? lookupHash(address, medium, pepper) : plainLookupEntry(address, medium)
    const body = { algorithm, pepper, addresses: [entry] }
    const { mappings } = await ask(accessToken, { method: 'POST', path: '/lookup', body })
    if (!isObject(mappings)) throw nonsense()
    return Object.hasOwn(mappings, entry) ? mappings[entry] : undefined
  }

  /** Homeservers in use sign `destination_is`, although federation calls it `destination`. */
  function signatureFor(uri: string, content: JsonObject): string {
    const origin = config.server_name
    const text = signedText({ method: 'POST', uri, origin, destination_is: server, content })
    return `X-Matrix origin="${origin}",destination="${server}",key="${signingKey.keyId}",sig="${signingKey.sign(text)}"`
  }

  return {
    async lookup(accessToken, { medium, address }) {
      const normal = normaliseAddress(medium, address)
      const found = await lookupOnce(accessToken, medium, normal).catch((error: unknown) => {
        // The pepper changed between our two requests.
        if (!(error instanceof ProtocolError && error.errcode === 'M_INVALID_PEPPER')) throw error
        return lookupOnce(accessToken, medium, normal)
      })
      return isUserId(found) ? found : undefined
    },
    async storeInvite(accessToken, invite) {
      const answer = await ask(accessToken, { method: 'POST', path: '/store-invite', body: invite })
      const { token, display_name } = answer
      const public_keys = keysIn(answer)
      if (typeof token !== 'string' || typeof display_name !== 'string' || public_keys.length === 0) throw nonsense()
      return { token, display_name, public_keys }
    },
    async requestToken(accessToken, wish, { clientSecret: client_secret, sendAttempt: send_attempt, nextLink }) {
      const { medium } = wish
      const address = medium === 'email' ? { email: wish.email } : { country: wish.country, phone_number: wish.number }
      const body = { ...address, client_secret, send_attempt, ...(nextLink !== undefined && { next_link: nextLink }) }
      const answer = await ask(accessToken, { method: 'POST', path: `/validate/${medium}/requestToken`, body })
      const { sid, msisdn, intl_fmt } = answer
      if (typeof sid !== 'string') throw nonsense()
      return { sid, ...(typeof msisdn === 'string' && { msisdn }), ...(typeof intl_fmt === 'string' && { intl_fmt }) }
    },
    async getValidated3pid(accessToken, { sid, clientSecret: client_secret }) {
      const path = `/3pid/getValidated3pid?${new URLSearchParams({ sid, client_secret })}`
      const { medium, address, validated_at } = await ask(accessToken, { method: 'GET', path })
      if (!isMedium(medium) || typeof address !== 'string' || !Number.isSafeInteger(validated_at)) throw nonsense()
      return { medium, address: normaliseAddress(medium, address), validatedAt: validated_at as number }
    },
    async bind(accessToken, { sid, clientSecret: client_secret }, userId) {
      const body = { sid, client_secret, mxid: userId }
      const { medium, address, mxid } = await ask(accessToken, { method: 'POST', path: '/3pid/bind', body })
      if (!isMedium(medium) || typeof address !== 'string' || address.includes('\0') || mxid !== userId)
        throw nonsense()
      return { medium, address: normaliseAddress(medium, address) }
    },
    async unbind({ medium, address }, mxid) {
      const body = { mxid, threepid: { medium, address } }
      const request = { method: 'POST', path: '/3pid/unbind', body } as const
      const { status, body: answer } = await call(request, (uri) => signatureFor(uri, body))
      if (status >= 200 && status <= 299) return 'success'
      // The server does not know the request, or does not unbind for homeservers.
      if (status === 404 || status === 405 || status === 501) return 'no-support'
      throw passedOn(server, status, answer)
    },
  }
}

/**
 * Reads both shapes of `public_keys`: the keys alone, and with URLs. Older servers also have `public_key`, and some have nothing else.
 */
function keysIn({ public_keys: list, public_key: single }: JsonObject): PublicKeyOfInvite[] {
  const entries = Array.isArray(list) && list.length > 0 ? list : [single]
  return entries.flatMap((entry) => {
    const { public_key, key_validity_url } = isObject(entry) ? entry : { public_key: entry, key_validity_url: null }
    if (typeof public_key !== 'string') return []
    return [{ public_key, ...(typeof key_validity_url === 'string' && { key_validity_url }) }]
  })
}

/** The grammar of an errcode. Unknown codes are passed on as well. */
const ERRCODE = /^[A-Z][A-Z0-9_.]{0,99}$/
const MAX_TEXT_CHARS = 500
/** These errors are about a token for another server. A client would read them as the end of its own session here. */
const NOT_OF_HERE: ReadonlySet<string> = new Set(['M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN'])

/** The error of an identity server, in the form that the client gets. */
function passedOn(server: ServerName, status: number, body: JsonObject | undefined): ProtocolError {
  const { errcode, error } = body ?? {}
  // A failure of that server is neither an error of ours nor an answer for the client.
  if (status < 400 || status > 499 || typeof errcode !== 'string' || !ERRCODE.test(errcode)) {
    return new ProtocolError('M_UNKNOWN', `The identity server ${server} answered with status ${status}.`, {
      status: 502,
    })
  }
  const text =
    typeof error === 'string' ? error.slice(0, MAX_TEXT_CHARS) : `The identity server ${server} refused this.`
  if (NOT_OF_HERE.has(errcode)) return new ProtocolError('M_UNAUTHORIZED', text)
  const known = Object.hasOwn(ERROR_STATUS, errcode)
  const { mxid, retry_after_ms } = body ?? {}
  return new ProtocolError(known ? (errcode as Errcode) : 'M_UNKNOWN', text, {
    status,
    extra: {
      ...(!known && { errcode }),
      ...(isUserId(mxid) && { mxid }),
      ...(typeof retry_after_ms === 'number' && { retry_after_ms }),
    },
  })
}
