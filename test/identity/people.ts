import { serverOf } from '../../src/core/ids.ts'
import { type AccountServer, type AccountServerOptions, startAccountServer } from '../support/account-server.ts'
import { decodeQuotedPrintable, type SmtpSink, startSmtp } from '../support/smtp.ts'
import { type Answer, type IdentityApi, openIdentity } from './identity-api.ts'

/** What proves that an address is somebody's. */
export interface Proof {
  readonly sid: string
  readonly client_secret: string
}

/** An identity service with a mail server, and users of any homeserver who validate addresses by the mails they get. */
export interface People {
  readonly server: AccountServer
  readonly identity: IdentityApi
  readonly smtp: SmtpSink
  /** What the mail server says from now on instead of taking messages. */
  refuseMails(error: Error | null): void
  tokenOf(userId: string): Promise<string>
  /** A session that waits for its token. */
  requested(email: string, by: string): Promise<Proof>
  validated(email: string, by: string): Promise<Proof>
  /** Binds an address that its user has validated. */
  bind(email: string, userId: string): Promise<Answer>
  close(): Promise<void>
}

export async function startPeople(identityValues: object = {}, options: AccountServerOptions = {}): Promise<People> {
  let refusal: Error | null = null
  let secrets = 0
  const tokens = new Map<string, string>()
  const smtp = await startSmtp({ hideSTARTTLS: true }, () => refusal)
  const mail = { from: 'id@hearth.test', smtp: { host: '127.0.0.1', port: smtp.port, security: 'none' } }
  const server = await startAccountServer(
    { identity: { base_url: 'https://id.hearth.test', mail, ...identityValues } },
    // Every homeserver believes whoever asks.
    { openIdVerifier: { subjectOf: async (_server, userId) => userId }, ...options },
  )
  const identity = openIdentity(server.baseUrl)

  async function tokenOf(userId: string): Promise<string> {
    const known = tokens.get(userId)
    if (known !== undefined) return known
    const body = { access_token: userId, matrix_server_name: serverOf(userId) }
    const { token } = (await identity.ask('POST', '/_matrix/identity/v2/account/register', { body })).body
    tokens.set(userId, token)
    return token
  }

  async function requested(email: string, by: string): Promise<Proof> {
    const client_secret = `secret${secrets++}`
    const body = { client_secret, email, send_attempt: 1 }
    const answer = await identity.ask('POST', '/validate/email/requestToken', { token: await tokenOf(by), body })
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return { sid: answer.body.sid, client_secret }
  }

  async function validated(email: string, by: string): Promise<Proof> {
    const proof = await requested(email, by)
    const token = /[?&]token=([\w-]+)/.exec(decodeQuotedPrintable(smtp.mails.at(-1)?.raw ?? ''))?.[1]
    const answer = await identity.ask('POST', '/validate/email/submitToken', {
      token: await tokenOf(by),
      body: { ...proof, token },
    })
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return proof
  }

  return {
    server,
    identity,
    smtp,
    refuseMails(error) {
      refusal = error
    },
    tokenOf,
    requested,
    validated,
    async bind(email, userId) {
      const body = { ...(await validated(email, userId)), mxid: userId }
      return identity.ask('POST', '/3pid/bind', { token: await tokenOf(userId), body })
    },
    async close() {
      await server.close()
      await smtp.close()
    },
  }
}
