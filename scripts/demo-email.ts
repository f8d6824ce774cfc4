import { lookupHash } from '../src/core/lookup-hash.ts'
import { type Account, type Api, PASSWORD } from '../test/support/api.ts'
import { decodeQuotedPrintable, type SmtpSink } from '../test/support/smtp.ts'

const IDENTITY = '/_matrix/identity/v2'

/** Opens the link of the newest mail, which a real mail exchange brought. */
async function openMail(smtp: SmtpSink, api: Api): Promise<{ subject: string }> {
  const mail = decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? '')
  const link = /http:\/\/\S+submitToken\S+/.exec(mail)?.[0]
  if (link === undefined) throw new Error('no mail with a link came')
  const url = new URL(link)
  await api.call('GET', url.pathname + url.search)
  return { subject: /^Subject: (.+)$/m.exec(mail)?.[1]?.trim() ?? '' }
}

async function identityToken(api: Api, { userId, token }: Account): Promise<string> {
  const path = `/user/${encodeURIComponent(userId)}/openid/request_token`
  const openId = await api.call('POST', path, { token, body: {} })
  return (await api.call('POST', `${IDENTITY}/account/register`, { body: openId })).token
}

/** Puts an address on an account and publishes it; each takes a mail of its own. Gives the first. */
export async function addAddress(
  api: Api,
  account: Account,
  email: string,
  smtp: SmtpSink,
): Promise<{ subject: string }> {
  const { userId, token } = account
  const own = { client_secret: 'demo.add', email, send_attempt: 1 }
  const { sid } = await api.call('POST', '/account/3pid/email/requestToken', { token, body: own })
  const mail = await openMail(smtp, api)
  const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: userId }, password: PASSWORD }
  const proof = { sid, client_secret: own.client_secret }
  await api.call('POST', '/account/3pid/add', { token, body: { ...proof, auth } })
  const { threepids } = await api.call('GET', '/account/3pid', { token })
  if (threepids[0]?.address !== email) throw new Error('the account does not have the address')

  const id_access_token = await identityToken(api, account)
  const published = { client_secret: 'demo.bind', email, send_attempt: 1 }
  const path = `${IDENTITY}/validate/email/requestToken`
  const session = await api.call('POST', path, { token: id_access_token, body: published })
  await openMail(smtp, api)
  const creds = { sid: session.sid, client_secret: published.client_secret, id_server: 'localhost', id_access_token }
  await api.call('POST', '/account/3pid/bind', { token, body: creds })
  return mail
}

/** Who an address is, asked without telling it: by its hash. */
export async function findByAddress(api: Api, asker: Account, email: string): Promise<string> {
  const token = await identityToken(api, asker)
  const { lookup_pepper: pepper } = await api.call('GET', `${IDENTITY}/hash_details`, { token })
  const hash = lookupHash(email, 'email', pepper)
  const body = { algorithm: 'sha256', pepper, addresses: [hash] }
  const { mappings } = await api.call('POST', `${IDENTITY}/lookup`, { token, body })
  if (mappings[hash] === undefined) throw new Error('the address was not found')
  return mappings[hash]
}
