import { Pool } from 'undici'

/** What an endpoint answered: JSON from outside, whose shape the caller expects by the published interface. */
// biome-ignore lint/suspicious/noExplicitAny: untyped data enters here
export type Json = any

export interface Account {
  readonly userId: string
  readonly token: string
  readonly deviceId: string
}

export interface Call {
  readonly token?: string
  readonly body?: unknown
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** A small client of a homeserver's published interface; knows nothing of the server behind it. */
export interface Api {
  readonly baseUrl: string
  /** Whatever the answer is. `path` follows the client prefix (`/sync`), or stands for itself when it starts with `/_` or `/.`. */
  request(method: string, path: string, call?: Call): Promise<{ status: number; body: Json }>
  /** The body of a 2xx answer; anything else throws. */
  call(method: string, path: string, call?: Call): Promise<Json>
  close(): Promise<void>
}

export class ApiError extends Error {
  readonly status: number
  readonly errcode: string

  constructor(method: string, path: string, status: number, body: Json) {
    super(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
    this.status = status
    this.errcode = String(body?.errcode)
  }
}

export interface ApiOptions {
  readonly prefix?: string
  readonly connections?: number
}

export function openApi(baseUrl: string, options: ApiOptions = {}): Api {
  const { prefix = '/_matrix/client/v3', connections = 16 } = options
  const { origin, pathname } = new URL(baseUrl)
  const root = pathname === '/' ? '' : pathname.replace(/\/$/, '')
  const pool = new Pool(origin, { connections, headersTimeout: 600_000, bodyTimeout: 600_000 })

  const request: Api['request'] = async (method, path, { token, body, timeoutMs, signal } = {}) => {
    const limit = timeoutMs === undefined ? signal : AbortSignal.timeout(timeoutMs)
    const answer = await pool.request({
      method: method as 'GET',
      path: root + (/^\/[_.]/.test(path) ? path : prefix + path),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: limit ?? null,
    })
    const text = await answer.body.text()
    return { status: answer.statusCode, body: parse(text) }
  }

  return {
    baseUrl,
    request,
    async call(method, path, call) {
      const { status, body } = await request(method, path, call)
      if (status < 200 || status > 299) throw new ApiError(method, path, status, body)
      return body
    },
    close: () => pool.destroy(),
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export const PASSWORD = 'correct horse battery staple'

const account = (body: Json): Account => ({ userId: body.user_id, token: body.access_token, deviceId: body.device_id })

/** Makes an account through the dummy stage, or with a registration token where one is given. */
export async function register(api: Api, username: string, registrationToken?: string): Promise<Account> {
  const body = { username, password: PASSWORD }
  const first = await api.request('POST', '/register', { body: { ...body, auth: { type: 'm.login.dummy' } } })
  if (first.status === 200) return account(first.body)
  const session = first.body.session
  if (first.status !== 401 || session === undefined) throw new ApiError('POST', '/register', first.status, first.body)
  if (registrationToken !== undefined) {
    const auth = { type: 'm.login.registration_token', token: registrationToken, session }
    const second = await api.request('POST', '/register', { body: { ...body, auth } })
    if (second.status === 200) return account(second.body)
  }
  return account(await api.call('POST', '/register', { body: { ...body, auth: { type: 'm.login.dummy', session } } }))
}

export async function login(api: Api, user: string, password = PASSWORD): Promise<Account> {
  const identifier = { type: 'm.id.user', user }
  return account(await api.call('POST', '/login', { body: { type: 'm.login.password', identifier, password } }))
}

export async function createRoom(api: Api, token: string, body: object = {}): Promise<string> {
  return (await api.call('POST', '/createRoom', { token, body })).room_id
}

export async function join(api: Api, token: string, roomId: string): Promise<void> {
  await api.call('POST', `/join/${encodeURIComponent(roomId)}`, { token, body: {} })
}

/** Sends a text message and gives its event id. */
export async function sendText(api: Api, token: string, roomId: string, txnId: string, text: string): Promise<string> {
  const path = `/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${encodeURIComponent(txnId)}`
  return (await api.call('PUT', path, { token, body: { msgtype: 'm.text', body: text } })).event_id
}

export interface SyncQuery {
  readonly since?: string
  readonly timeout?: number
  readonly filter?: object
}

export function syncPath({ since, timeout = 0, filter }: SyncQuery): string {
  const query = new URLSearchParams({ timeout: String(timeout) })
  if (since !== undefined) query.set('since', since)
  if (filter !== undefined) query.set('filter', JSON.stringify(filter))
  return `/sync?${query}`
}

/** Runs `work` over the items, at most `width` at a time, keeping the order of the results. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = new Array(items.length)
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index]!, index)
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker))
  return results
}
