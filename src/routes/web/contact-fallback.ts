import { createHash } from 'node:crypto'
import { ProtocolError } from '../../core/errors.ts'
import { preferredLanguages } from '../../core/languages.ts'
import type { AddressWish } from '../../domain/contact/identity-server.ts'
import type { Purpose } from '../../domain/contact/proof.ts'
import { networkOf } from '../../domain/network.ts'
import type { Services } from '../../domain/services.ts'
import type { FallbackStage, Fields, Sender } from './fallback-stage.ts'

/** Derived from the session of the authentication, so only its owner knows it, and the page need not contain it. */
const clientSecretOf = (session: string): string =>
  createHash('sha256').update(`fallback ${session}`).digest('base64url')

const purposeOf = (operation: string): Purpose => (operation.startsWith('POST C/register') ? 'register' : 'password')

const credsIn = ({ sid = '', session = '' }: Fields) => ({
  threepid_creds: { sid, client_secret: clientSecretOf(session) },
})

async function begin(wish: AddressWish, purpose: Purpose, fields: Fields, services: Services, sender: Sender) {
  const { sid } = await services.contactTokens.request(purpose, wish, {
    clientSecret: clientSecretOf(fields.session ?? ''),
    // Each further request sends another message.
    sendAttempt: services.clock.now(),
    nextLink: undefined,
    dialect: sender.dialect,
    isForwarded: sender.isForwarded,
    sender: networkOf(sender.ip),
    look: { brand: undefined, languages: preferredLanguages(sender.acceptLanguage) },
  })
  return { ...fields, sid }
}

/** The address at which the person can request the message again, or for another address. */
const againOf = ({ session = '' }: Fields): string => `?session=${encodeURIComponent(session)}`

export const emailFallback: FallbackStage = {
  page: (_services, _view, fields) =>
    fields.sid === undefined
      ? { name: 'fallback-email.page', values: { email: fields.email } }
      : {
          name: 'fallback-email-sent.page',
          hidden: { sid: fields.sid, email: fields.email },
          values: { email: fields.email, again: againOf(fields) },
        },
  async prepare(fields, services, { operation }, sender) {
    if (fields.sid !== undefined) return undefined
    const wish = { medium: 'email', email: fields.email?.trim() ?? '' } as const
    return begin(wish, purposeOf(operation), fields, services, sender)
  },
  auth: credsIn,
}

/** Any country code works for a number in international form. */
export const ANY_COUNTRY = 'GB'

/** @throws ProtocolError `M_INVALID_PARAM` */
export function international(number: string): string {
  const written = number.trim().replace(/^00/, '+')
  if (written.startsWith('+')) return written
  throw new ProtocolError('M_INVALID_PARAM', 'Write the number with the code of its country, as in +44 7400 123456.')
}

export const msisdnFallback: FallbackStage = {
  page: (_services, _view, fields) =>
    fields.sid === undefined
      ? { name: 'fallback-msisdn.page', values: { number: fields.number } }
      : {
          name: 'fallback-msisdn-sent.page',
          hidden: { sid: fields.sid, number: fields.number },
          values: { number: fields.number, again: againOf(fields) },
        },
  async prepare(fields, services, { operation }, sender) {
    const purpose = purposeOf(operation)
    if (fields.sid === undefined) {
      const wish = { medium: 'msisdn', country: ANY_COUNTRY, number: international(fields.number ?? '') } as const
      return begin(wish, purpose, fields, services, sender)
    }
    const proof = { sid: fields.sid, clientSecret: clientSecretOf(fields.session ?? '') }
    await services.contactSessions.of(purpose).submit('msisdn', proof, fields.token?.trim() ?? '')
    return undefined
  },
  auth: credsIn,
}
