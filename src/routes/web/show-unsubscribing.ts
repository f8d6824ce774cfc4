import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { openForm } from './form.ts'
import { pageReply } from './page.ts'

export const UnsubscribeQuery = Type.Object({ token: Type.Optional(Type.String({ maxLength: 255 })) })

/** The link in a mail about unread messages. Mail scanners open links too, so that a person must confirm it on the page. */
export const showUnsubscribing = endpoint(
  'GET CU/hearth/pushers/unsubscribe',
  { auth: 'none', query: UnsubscribeQuery },
  async ({ query: { token = '' }, acceptLanguage }, services) => {
    const email = await services.unsubscribing.addressOf(token)
    if (email === undefined) {
      return pageReply(services, 'unsubscribe-unknown.page', {}, { acceptLanguage, isSecret: true, status: 404 })
    }
    return pageReply(services, 'unsubscribe.page', { email, form: openForm({}) }, { acceptLanguage, isSecret: true })
  },
)
