import { ProtocolError } from '../../../core/errors.ts'
import { preferredLanguages } from '../../../core/languages.ts'
import type { Dialect } from '../../../core/paths.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import type { IdentityRequester } from '../../../domain/identity/requester.ts'
import type { TokenRequest } from '../../../domain/identity/sessions.ts'
import { networkOf } from '../../../domain/network.ts'

const OPAQUE = /^[0-9a-zA-Z.=_-]{1,255}$/
/** `client_secret` and `sid`. */
export const Opaque = Type.String({ pattern: OPAQUE.source })

const ATTEMPT = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

/** The keys that all requests for a token have. */
export const TOKEN_REQUEST_KEYS = {
  client_secret: Opaque,
  send_attempt: Type.Integer(ATTEMPT),
  next_link: Type.Optional(Type.String({ maxLength: 2_000 })),
}

/** Some clients send the attempt as text to identity servers. */
export const IDENTITY_TOKEN_KEYS = {
  ...TOKEN_REQUEST_KEYS,
  send_attempt: Type.Unsafe<number | string>({ type: ['integer', 'string'], ...ATTEMPT, pattern: '^[0-9]{1,15}$' }),
}

/** Selects the template of the message. */
export const LookQuery = Type.Object({
  brand: Type.Optional(Type.String({ maxLength: 64 })),
  lang: Type.Optional(Type.String({ maxLength: 64 })),
})

export const Submission = Type.Object({ sid: Opaque, client_secret: Opaque, token: Type.String({ maxLength: 255 }) })

/** The parameters of a message's link; some are missing if the link was truncated. */
export const LinkQuery = Type.Object({
  sid: Type.Optional(Type.String()),
  client_secret: Type.Optional(Type.String()),
  token: Type.Optional(Type.String()),
})

/** The parameters of a complete and well-formed link; undefined for a truncated one. */
export function wholeLink({ sid = '', client_secret = '', token }: Static<typeof LinkQuery>) {
  const isWhole = token !== undefined && token.length <= 255 && OPAQUE.test(sid) && OPAQUE.test(client_secret)
  return isWhole ? { sid, client_secret, token } : undefined
}

interface Parts {
  readonly body: { readonly client_secret: string; readonly send_attempt: number | string; readonly next_link?: string }
  readonly query: { readonly brand?: string; readonly lang?: string }
  readonly dialect: Dialect
  readonly requester: IdentityRequester | undefined
  readonly acceptLanguage: string | undefined
  readonly ip: string
}

export function tokenRequestOf({ body, query, dialect, requester, acceptLanguage, ip }: Parts): TokenRequest {
  return {
    clientSecret: body.client_secret,
    sendAttempt: attemptIn(body.send_attempt, dialect),
    nextLink: body.next_link === '' ? undefined : body.next_link,
    dialect,
    sender: requester?.userId ?? networkOf(ip),
    look: { brand: query.brand, languages: preferredLanguages(query.lang ?? acceptLanguage) },
  }
}

/** @throws ProtocolError `M_INVALID_PARAM` for text in the dialect that does not allow it */
function attemptIn(attempt: number | string, dialect: Dialect): number {
  if (typeof attempt === 'string' && dialect === 'proto') {
    throw new ProtocolError('M_INVALID_PARAM', "Key 'send_attempt' must be an integer.")
  }
  return Number(attempt)
}
