import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { goTo } from '../../oauth/answer.ts'
import { pageReply } from '../../web/page.ts'
import { shownAddress } from '../shown.ts'
import { whenSignedIn } from '../signed-in.ts'
import { visitorForm } from '../visitor.ts'

const Query = Type.Object({ address: Type.Optional(Type.String({ maxLength: 500 })) })

/** Asks whether an address shall be removed from the account. */
export const showAddress = endpoint(
  'GET /_hearth/account/address',
  { auth: 'none', limited: 'other', query: Query },
  (request, services) => {
    const { address = '' } = request.query
    const next = `/_hearth/account/address?${new URLSearchParams({ address })}`
    return whenSignedIn(request, services, { proof: 'just now', next }, async (owner) => {
      const { userNid, userId } = owner.session
      const own = (await services.contacts.list(userNid)).find((each) => each.address === address)
      if (own === undefined) return goTo('/_hearth/account')
      const form = visitorForm(owner, { address }, '/_hearth/account/address')
      const values = { form, user_id: userId, address: shownAddress(own) }
      return pageReply(services, 'account-address.page', values, {
        acceptLanguage: request.acceptLanguage,
        isSecret: true,
      })
    })
  },
)
