import type { Json } from '../support/api.ts'

export interface Ask {
  readonly token?: string | undefined
  /** An object is sent as JSON, a form as one, text and bytes as they are. */
  readonly body?: object | string | URLSearchParams | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

/** A small client of the identity service's published interface. A path that does not start with `/_` follows `/_proto/identity/v2`. */
export interface IdentityApi {
  ask(method: string, path: string, ask?: Ask): Promise<Answer>
}

export const P2 = '/_proto/identity/v2'
export const P1 = '/_proto/identity/api/v1'

export function openIdentity(baseUrl: string): IdentityApi {
  return {
    async ask(method, path, { token, body, headers = {} } = {}) {
      const isReady = typeof body === 'string' || body instanceof URLSearchParams || body instanceof Uint8Array
      const answer = await fetch(baseUrl + (path.startsWith('/_') ? path : P2 + path), {
        method,
        redirect: 'manual',
        headers: {
          ...(body !== undefined && !isReady && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: body === undefined ? null : isReady ? (body as string) : JSON.stringify(body),
      })
      return { status: answer.status, headers: answer.headers, body: parse(await answer.text()) }
    },
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
