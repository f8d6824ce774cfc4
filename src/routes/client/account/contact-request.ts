import { preferredLanguages } from '../../../core/languages.ts'
import { Type } from '../../../core/shapes.ts'
import type { AddressWish } from '../../../domain/contact/identity-server.ts'
import type { Purpose } from '../../../domain/contact/proof.ts'
import { networkOf } from '../../../domain/network.ts'
import type { Services } from '../../../domain/services.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { LookQuery, TOKEN_REQUEST_KEYS } from '../../identity/validation/token-request.ts'

const KEYS = {
  ...TOKEN_REQUEST_KEYS,
  id_server: Type.Optional(Type.String({ maxLength: 500 })),
  id_access_token: Type.Optional(Type.String({ maxLength: 5_000 })),
}

export const EmailBody = Type.Object({ ...KEYS, email: Type.String() })

export const MsisdnBody = Type.Object({ ...KEYS, country: Type.String(), phone_number: Type.String() })

export const TokenQuery = LookQuery

interface TokenBody {
  readonly client_secret: string
  readonly send_attempt: number
  readonly next_link?: string
  readonly id_server?: string
  readonly id_access_token?: string
}

type Request = EndpointRequest<unknown, { readonly brand?: string; readonly lang?: string }, TokenBody, unknown>

/** Begins to validate an address for a purpose. */
export function requestToken(
  purpose: Purpose,
  wish: AddressWish,
  { body, query, dialect, acceptLanguage, ip, isForwarded }: Request,
  { contactTokens }: Services,
): Promise<object> {
  const asked = {
    clientSecret: body.client_secret,
    sendAttempt: body.send_attempt,
    nextLink: body.next_link === '' ? undefined : body.next_link,
    dialect,
    isForwarded,
    sender: networkOf(ip),
    look: { brand: query.brand, languages: preferredLanguages(query.lang ?? acceptLanguage) },
  }
  const named = { idServer: body.id_server || undefined, accessToken: body.id_access_token || undefined }
  return contactTokens.request(purpose, wish, asked, named)
}

export const emailIn = ({ email }: { readonly email: string }): AddressWish => ({ medium: 'email', email })

export const numberIn = (body: { readonly country: string; readonly phone_number: string }): AddressWish => ({
  medium: 'msisdn',
  country: body.country,
  number: body.phone_number,
})

export const MediumShape = Type.Unsafe<'email' | 'msisdn'>({ type: 'string', enum: ['email', 'msisdn'] })

export const UnbindBody = Type.Object({
  medium: MediumShape,
  address: Type.String({ maxLength: 500 }),
  id_server: Type.Optional(Type.String()),
})
