import { createHmac } from 'node:crypto'
import { type Account, type Api, type Json, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

export const SECRET = 'a secret that administrators share'
export const ADMIN = '/_synapse/admin'

export interface Answer {
  readonly status: number
  readonly body: Json
}

/** A server with an administrator. */
export interface Office {
  readonly server: TestServer
  readonly api: Api
  readonly boss: Account
  /** A call under `/_synapse/admin` as the administrator; throws on anything but a 2xx. */
  call(method: string, path: string, body?: unknown): Promise<Json>
  /** The same, whatever the answer. */
  ask(method: string, path: string, body?: unknown, token?: string): Promise<Answer>
  person(name: string): Promise<Account>
  close(): Promise<void>
}

export function macOf(nonce: string, username: string, password: string, isAdmin: boolean, secret = SECRET): string {
  const parts = [nonce, username, password, isAdmin ? 'admin' : 'notadmin']
  return createHmac('sha1', secret).update(parts.join('\0')).digest('hex')
}

export async function registerBySecret(api: Api, username: string, isAdmin: boolean): Promise<Account> {
  const { nonce } = await api.call('GET', `${ADMIN}/v1/register`)
  const password = 'correct horse battery staple'
  const mac = macOf(nonce, username, password, isAdmin)
  const body = await api.call('POST', `${ADMIN}/v1/register`, {
    body: { nonce, username, password, admin: isAdmin, mac },
  })
  return { userId: body.user_id, token: body.access_token, deviceId: body.device_id }
}

export async function openOffice(overrides: Parameters<typeof startServer>[0] = {}): Promise<Office> {
  const registration = { ...overrides.registration, shared_secret: SECRET }
  const server = await startServer({ ...overrides, registration })
  const api = openApi(server.baseUrl)
  const boss = await registerBySecret(api, 'boss', true)
  return {
    server,
    api,
    boss,
    call: (method, path, body) => api.call(method, under(path), { token: boss.token, body }),
    ask: (method, path, body, token = boss.token) => api.request(method, under(path), { token, body }),
    person: (name) => register(api, name),
    async close() {
      await api.close()
      await server.close()
    },
  }
}

const under = (path: string): string => (path.startsWith('/_') ? path : ADMIN + path)
