import { type AccountServer, type AccountServerOptions, startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, openApi, PASSWORD, register } from '../support/api.ts'
import { type FakeGateway, startGateway } from '../support/sms-gateway.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'

/** What proves that an address is somebody's. */
export interface Proof {
  readonly sid: string
  readonly client_secret: string
}

export interface Answer {
  readonly status: number
  readonly body: Json
}

/** A homeserver with a mail server and a gateway for text messages, and people who validate addresses with it. */
export interface ContactPeople {
  readonly server: AccountServer
  readonly api: Api
  readonly smtp: SmtpSink
  readonly gateway: FakeGateway
  /** What the mail server says from now on instead of taking messages. */
  refuseMails(error: Error | null): void
  account(name?: string): Promise<Account>
  /** `place` is `register`, `account/password` or `account/3pid`. */
  requestEmail(place: string, email: string, change?: object): Promise<Answer>
  requestNumber(place: string, number: string, change?: object): Promise<Answer>
  /** The link of the newest mail. */
  link(): URL
  /** The code of the newest text message. */
  code(): string
  /** Opens the link of the newest mail, and confirms what it asks. */
  follow(): Promise<{ status: number; page: string; location: string | undefined }>
  /** A session whose link was followed. */
  validated(place: string, email: string): Promise<Proof>
  /** Adds an address to an account. */
  add(account: Account, proof: Proof): Promise<Answer>
  listed(account: Account): Promise<{ medium: string; address: string; validated_at: number; added_at: number }[]>
  /** A token for the identity service of the same server. */
  identityToken(account: Account): Promise<string>
  close(): Promise<void>
}

/** All that the identity service and the homeserver need to send messages to these places. */
export function messageOptions(smtp: SmtpSink, gateway: FakeGateway): object {
  return {
    mail: { from: 'hearth@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } },
    sms: { gateway: 'http', refused_countries: ['FR'], http: { url: `${gateway.url}/send`, rejected: 'barred' } },
  }
}

export const ownPassword = ({ userId }: Account): object => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: userId },
  password: PASSWORD,
})

export async function startContactPeople(
  values: object = {},
  options: AccountServerOptions = {},
): Promise<ContactPeople> {
  let refusal: Error | null = null
  let [secrets, names] = [0, 0]
  const smtp = await startSmtp({ hideSTARTTLS: true }, () => refusal)
  const gateway = await startGateway()
  const server = await startAccountServer({ identity: messageOptions(smtp, gateway), ...values }, options)
  const api = openApi(server.baseUrl)
  const secret = () => `secret.${secrets++}`

  const requestEmail: ContactPeople['requestEmail'] = (place, email, change) =>
    api.request('POST', `/${place}/email/requestToken`, {
      body: { client_secret: secret(), email, send_attempt: 1, ...change },
    })
  const lastMail = () => decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? '')
  const link = () => new URL(/http:\/\/\S+submitToken\S+/.exec(lastMail())?.[0] ?? 'nothing:')
  /** The link says where the server believes to be; it listens on another port. */
  const here = (url: URL) => server.baseUrl + url.pathname + url.search

  async function follow() {
    const url = link()
    const opened = await fetch(here(url), { redirect: 'manual' })
    const page = await opened.text()
    if (!page.includes('<form')) {
      return { status: opened.status, page, location: opened.headers.get('location') ?? undefined }
    }
    const action = new URL(/action="([^"]+)"/.exec(page)?.[1] ?? '', url)
    const hidden = page.matchAll(/name="([^"]+)" value="([^"]*)"/g)
    const fields = Object.fromEntries([...hidden].map(([, name = '', value = '']) => [name, value]))
    const confirmed = await fetch(here(action), { method: 'POST', body: new URLSearchParams(fields) })
    return { status: confirmed.status, page: await confirmed.text(), location: undefined }
  }

  return {
    server,
    api,
    smtp,
    gateway,
    refuseMails(error) {
      refusal = error
    },
    account: (name = `person${names++}`) => register(api, name),
    requestEmail,
    requestNumber: (place, phone_number, change) =>
      api.request('POST', `/${place}/msisdn/requestToken`, {
        body: { client_secret: secret(), country: 'GB', phone_number, send_attempt: 1, ...change },
      }),
    link,
    code: () => /\b\d{6}\b/.exec(JSON.parse(gateway.requests.at(-1)?.body ?? '{"text":""}').text)?.[0] ?? '',
    follow,
    async validated(place, email) {
      const client_secret = secret()
      const { status, body } = await requestEmail(place, email, { client_secret })
      if (status !== 200) throw new Error(JSON.stringify(body))
      const followed = await follow()
      if (followed.status !== 200) throw new Error(followed.page)
      return { sid: body.sid, client_secret }
    },
    add: (account, proof) =>
      api.request('POST', '/account/3pid/add', {
        token: account.token,
        body: { ...proof, auth: ownPassword(account) },
      }),
    listed: async ({ token }) => (await api.call('GET', '/account/3pid', { token })).threepids,
    async identityToken({ userId, token }) {
      const path = `/user/${encodeURIComponent(userId)}/openid/request_token`
      const openId = await api.call('POST', path, { token, body: {} })
      const answer = await api.call('POST', '/_matrix/identity/v2/account/register', { body: openId })
      return answer.token
    },
    async close() {
      await api.close()
      await server.close()
      await smtp.close()
      await gateway.close()
    },
  }
}
