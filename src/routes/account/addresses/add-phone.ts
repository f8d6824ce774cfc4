import { ProtocolError } from '../../../core/errors.ts'
import { preferredLanguages } from '../../../core/languages.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import type { Services } from '../../../domain/services.ts'
import { endpoint, type RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { Opaque } from '../../identity/validation/token-request.ts'
import { goTo } from '../../oauth/answer.ts'
import { ANY_COUNTRY, international } from '../../web/contact-fallback.ts'
import { doneWith } from '../account-page.ts'
import { type Owner, whenSubmitted } from '../signed-in.ts'
import { canAddPhone, PHONE_PAGE, phonePage, phoneSecretOf } from './phone-page.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  number: Type.Optional(Type.String({ maxLength: 64 })),
  sid: Type.Optional(Opaque),
  token: Type.Optional(Type.String({ maxLength: 64 })),
})

type Request = EndpointRequest<unknown, unknown, Static<typeof Form>>

/** First sends a code to the number, and then, with that code, adds the number to the account. */
export const addPhone = endpoint(
  'POST /_hearth/account/phone',
  { auth: 'none', limited: 'login', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: PHONE_PAGE }, async (owner) => {
      if (!canAddPhone(services.config)) return goTo('/_hearth/account')
      const { number = '', sid } = request.body
      try {
        return sid === undefined ? await send(request, services, owner) : await add(sid, request, services, owner)
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return phonePage(services, request, owner, { number, problem: error, ...(sid !== undefined && { sid }) })
      }
    }),
)

async function send(request: Request, services: Services, owner: Owner): Promise<RawReply> {
  const number = request.body.number?.trim() ?? ''
  const { sid } = await services.contactTokens.request(
    'add',
    { medium: 'msisdn', country: ANY_COUNTRY, number: international(number) },
    {
      clientSecret: phoneSecretOf(owner),
      // Each further request sends another message.
      sendAttempt: services.clock.now(),
      nextLink: undefined,
      dialect: request.dialect,
      isForwarded: request.isForwarded,
      sender: networkOf(request.ip),
      look: { brand: undefined, languages: preferredLanguages(request.acceptLanguage) },
    },
  )
  return phonePage(services, request, owner, { number, sid })
}

async function add(
  sid: string,
  { body }: Request,
  { contacts, contactSessions }: Services,
  owner: Owner,
): Promise<RawReply> {
  const proof = { sid, clientSecret: phoneSecretOf(owner) }
  await contactSessions.of('add').submit('msisdn', proof, body.token?.trim() ?? '')
  await contacts.add(owner.session, proof)
  return doneWith('phone_added')
}
