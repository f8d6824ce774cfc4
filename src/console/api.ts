import { facts } from './facts.ts'
import { t } from './words.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An answer that refuses, in the server's words. */
export class Refusal extends Error {
  readonly status: number
  readonly errcode: string
  /** The act needs a proof of who the administrator is, given just now. */
  readonly isProofNeeded: boolean

  constructor(status: number, errcode: string, message: string, isProofNeeded = false) {
    super(message)
    this.status = status
    this.errcode = errcode
    this.isProofNeeded = isProofNeeded
  }
}

/** A path with its parts encoded: path`/rooms/${id}/state`. */
export function path(texts: TemplateStringsArray, ...parts: readonly string[]): string {
  return texts.reduce((all, text, index) => all + encodeURIComponent(parts[index - 1] ?? '') + text)
}

/** A path with those parameters that have a value. */
export function withQuery(base: string, parameters: Readonly<Record<string, string | number | boolean | undefined>>) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') query.set(name, String(value))
  }
  const text = query.toString()
  return text === '' ? base : `${base}?${text}`
}

async function ask(method: Method, url: string, body: object | undefined, signal?: AbortSignal): Promise<Response> {
  let answer: Response
  try {
    answer = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${facts.token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Refusal(0, 'OFFLINE', t('The server does not answer. Look whether it runs, and whether you are online.'))
  }
  if (answer.ok) return answer
  const {
    errcode = '',
    error,
    proof_needed,
  } = (await answer.json().catch(() => ({}))) as {
    errcode?: string
    error?: string
    proof_needed?: boolean
  }
  // The session has ended, or the right was withdrawn: the page asks to sign in again, and comes back here.
  if (answer.status === 401) location.reload()
  throw new Refusal(
    answer.status,
    errcode,
    error ?? t('The server answered {status}.', { status: answer.status }),
    proof_needed === true,
  )
}

/** Calls the admin API. @throws Refusal */
export async function call<T = object>(method: Method, url: string, body?: object, signal?: AbortSignal): Promise<T> {
  const answer = await ask(method, url, body ?? (method === 'POST' || method === 'PUT' ? {} : undefined), signal)
  return (await answer.json()) as T
}

/** Fetches a file as an address that an image can show. The caller revokes it. @throws Refusal */
export async function fetchFile(url: string): Promise<string> {
  return URL.createObjectURL(await (await ask('GET', url, undefined)).blob())
}

/** Says in words why something failed. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : t('Something went wrong in this page.')
}
