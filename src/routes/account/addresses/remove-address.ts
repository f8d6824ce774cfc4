import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { doneWith } from '../account-page.ts'
import { whenSubmitted } from '../signed-in.ts'

const Form = Type.Object({
  form: Type.Optional(Type.String()),
  address: Type.Optional(Type.String({ maxLength: 500 })),
})

export const removeAddress = endpoint(
  'POST /_hearth/account/address',
  { auth: 'none', limited: 'other', body: Form, forms: true },
  (request, services) =>
    whenSubmitted(request, services, { proof: 'just now', next: '/_hearth/account' }, async ({ session }) => {
      const own = (await services.contacts.list(session.userNid)).find((each) => each.address === request.body.address)
      if (own === undefined) return goTo('/_hearth/account')
      await services.contacts.remove(session, own, undefined)
      return doneWith('address_removed')
    }),
)
