import { ProtocolError } from '../../../core/errors.ts'
import { preferredLanguages } from '../../../core/languages.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { networkOf } from '../../../domain/network.ts'
import type { Services } from '../../../domain/services.ts'
import { endpoint, type RawReply } from '../../../http/endpoint.ts'
import type { EndpointRequest } from '../../../http/request.ts'
import { Opaque } from '../../identity/validation/token-request.ts'
import { doneWith } from '../account-page.ts'
import { type Owner, whenSubmitted } from '../signed-in.ts'
import { clientSecretOf, EMAIL_PAGE, emailPage } from './email-page.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  email: Type.Optional(Type.String({ maxLength: 500 })),
  sid: Type.Optional(Opaque),
})

type Request = EndpointRequest<unknown, unknown, Static<typeof Form>>

/** First sends a link to the address, and then, once it was opened, adds the address to the account. */
export const addEmail = endpoint(
  'POST /_hearth/account/email',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: EMAIL_PAGE }, async (owner) => {
      const { email = '', sid } = request.body
      try {
        return sid === undefined ? await send(request, services, owner) : await add(sid, services, owner)
      } catch (error) {
        if (!(error instanceof ProtocolError) || error.status >= 500) throw error
        return emailPage(services, request, owner, { email, problem: error, ...(sid !== undefined && { sid }) })
      }
    }),
)

async function send(request: Request, services: Services, owner: Owner): Promise<RawReply> {
  const email = request.body.email?.trim() ?? ''
  const { sid } = await services.contactTokens.request(
    'add',
    { medium: 'email', email },
    {
      clientSecret: clientSecretOf(owner),
      // Each further request sends another message.
      sendAttempt: services.clock.now(),
      nextLink: undefined,
      dialect: request.dialect,
      isForwarded: request.isForwarded,
      sender: networkOf(request.ip),
      look: { brand: undefined, languages: preferredLanguages(request.acceptLanguage) },
    },
  )
  return emailPage(services, request, owner, { email, sid })
}

async function add(sid: string, { contacts }: Services, owner: Owner): Promise<RawReply> {
  await contacts.add(owner.session, { sid, clientSecret: clientSecretOf(owner) })
  return doneWith('email_added')
}
