import { Type } from '../../core/shapes.ts'
import { endpoint } from '../../http/endpoint.ts'
import { pageReply } from './page.ts'
import { UnsubscribeQuery } from './show-unsubscribing.ts'

/** The form of the page, and the button that mail programs show (RFC 8058). */
export const unsubscribe = endpoint(
  'POST CU/hearth/pushers/unsubscribe',
  { auth: 'none', query: UnsubscribeQuery, body: Type.Object({}), forms: true },
  async ({ query: { token = '' }, acceptLanguage }, services) => {
    const email = await services.unsubscribing.addressOf(token)
    if (email === undefined) {
      return pageReply(services, 'unsubscribe-unknown.page', {}, { acceptLanguage, isSecret: true, status: 404 })
    }
    await services.unsubscribing.unsubscribe(token)
    return pageReply(services, 'unsubscribed.page', { email }, { acceptLanguage, isSecret: true })
  },
)
