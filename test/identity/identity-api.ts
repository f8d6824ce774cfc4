import type { Json } from '../support/api.ts'

export interface Ask {
  readonly token?: string | undefined
  /** An object is sent as JSON, a form as one, text as it is. */
  readonly body?: object | string | URLSearchParams
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
      const isText = typeof body === 'string' || body instanceof URLSearchParams
      const answer = await fetch(baseUrl + (path.startsWith('/_') ? path : P2 + path), {
        method,
        redirect: 'manual',
        headers: {
          ...(body !== undefined && !isText && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: body === undefined ? null : isText ? body : JSON.stringify(body),
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
