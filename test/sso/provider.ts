import { generateKeyPairSync, type KeyObject, sign as signBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { openFront } from './front.ts'

/** Claims of a person, by the name that is typed into the login form. */
export type People = Record<string, Record<string, unknown>>

/** What becomes of the ID token on its way. */
export type Tampering = (claims: Record<string, unknown>, sign: (claims: object, key?: 'wrong') => string) => string

/** A real OpenID Connect provider on loopback, with a login form. */
export interface TestProvider {
  readonly issuer: string
  readonly people: People
  /** Queries of the requests to its authorization endpoint. */
  readonly asked: URLSearchParams[]
  tampering: Tampering | undefined
  /** What it publishes of itself besides, or instead. */
  published: object
  /** While it is true, nothing is answered but 503. */
  isDown: boolean
  close(): Promise<void>
}

export const CLIENT = { id: 'hearth', secret: 'a secret/of:hearth' }

/** An ID token as any provider makes one. */
function jws(claims: object, key: KeyObject): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${encode({ alg: 'ES256', kid: 'one' })}.${encode(claims)}`
  return `${text}.${signBytes('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

export async function openTestProvider(redirectUri: string): Promise<TestProvider> {
  const [key, wrongKey] = [newKey(), newKey()]
  const provider: { -readonly [Name in keyof TestProvider]: TestProvider[Name] } = {
    issuer: '',
    people: {},
    asked: [],
    tampering: undefined,
    published: {},
    isDown: false,
    close: async () => {},
  }

  const sign = (claims: object, which?: 'wrong'): string => jws(claims, which === undefined ? key : wrongKey)

  const front = await openFront({
    host: '127.0.0.1',
    seen({ url = '' }, response) {
      if (url.startsWith('/auth?')) provider.asked.push(new URLSearchParams(url.slice(6)))
      if (provider.isDown) response.writeHead(503).end('out of order')
      return provider.isDown
    },
    async edit(path, body) {
      if (path.startsWith('/.well-known/')) return JSON.stringify({ ...JSON.parse(body), ...provider.published })
      if (path !== '/token' || provider.tampering === undefined) return body
      const answer = JSON.parse(body)
      return JSON.stringify({ ...answer, id_token: provider.tampering(claimsOf(answer.id_token), sign) })
    },
  })
  provider.issuer = front.origin
  const server = createServer(service(front.origin, redirectUri, key, provider.people).callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  front.lead((server.address() as AddressInfo).port)
  provider.close = async () => {
    await front.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return provider
}

function service(issuer: string, redirectUri: string, key: KeyObject, people: People): Provider {
  const jwk = { ...key.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }
  const op: Provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [jwk] },
    cookies: { keys: ['loopback'] },
    pkce: { required: () => true },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'] },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ sub: id, ...people[id] }),
    }),
    // Consent is taken for granted: what is tested is the sign-in.
    async loadExistingGrant({ oidc }: { oidc: { client: { clientId: string }; session: { accountId: string } } }) {
      const grant = new op.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  return op
}
