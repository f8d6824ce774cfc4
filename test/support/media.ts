import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Json } from './api.ts'

export interface FileAnswer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  /** Of what is JSON. */
  readonly body: Json
}

export async function fetchFile(url: string, init: RequestInit & { token?: string } = {}): Promise<FileAnswer> {
  const { token, headers, ...rest } = init
  const answer = await fetch(url, {
    ...rest,
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...(headers as object) },
  })
  const bytes = Buffer.from(await answer.arrayBuffer())
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return { status: answer.status, headers: answer.headers, bytes, body: isJson ? parse(bytes) : undefined }
}

function parse(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

export interface UploadOptions {
  readonly type?: string
  readonly name?: string
}

/** Uploads a file and gives its `server/mediaId`. */
export async function uploadFile(
  baseUrl: string,
  token: string,
  bytes: Uint8Array | string,
  { type = 'application/octet-stream', name }: UploadOptions = {},
): Promise<string> {
  const query = name === undefined ? '' : `?filename=${encodeURIComponent(name)}`
  const { status, body } = await fetchFile(`${baseUrl}/_matrix/media/v3/upload${query}`, {
    ...{ method: 'POST', token, body: bytes, headers: { 'content-type': type } },
  })
  if (status !== 200) throw new Error(`upload: ${status} ${JSON.stringify(body)}`)
  return String(body.content_uri).slice('mxc://'.length)
}

/** Files beneath a directory, as paths. */
export function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
  } catch {
    return []
  }
}
