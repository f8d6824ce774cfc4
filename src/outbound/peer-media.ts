import { ProtocolError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { fileNameIn } from '../core/media/content-disposition.ts'
import type { Mxc } from '../core/mxc.ts'
import { failureOf } from './failures.ts'
import type { Federation, FederationAnswer } from './federation.ts'
import type { GuardedClient, HttpStream } from './http.ts'
import { boundaryOf, partsOf } from './multipart.ts'

/** A file of another server, with the properties that the server claims. */
export interface PeerFile {
  readonly contentType: string | undefined
  readonly fileName: string | undefined
  readonly body: AsyncIterable<Buffer>
}

/** Fetches files of other servers (server-server API, "Content repository"). */
export interface MediaPeers {
  /**
   * Passes a file to `take` as a stream of at most `maxBytes`. For servers that know only the old endpoint it uses that one.
   *
   * @throws ProtocolError `M_NOT_FOUND`, `M_NOT_YET_UPLOADED`, `M_TOO_LARGE` (502), `M_FORBIDDEN` when our operator shuts the server out,
   * 502 `M_UNKNOWN` for everything else that goes wrong there
   * @throws what `take` throws, unless reading broke off
   */
  download<T>(mxc: Mxc, maxBytes: number, take: (file: PeerFile) => Promise<T>): Promise<T>
}

/** How long the other server may wait for an upload, and how long we wait for its answer to begin. */
const UPLOAD_WAIT_MS = 20_000
const BEGIN_MS = 30_000
const BODY_MS = 300_000
const MAX_REDIRECTS = 3
/** Bytes of a multipart answer without the file. */
const WRAPPING_BYTES = 65_536

export function createMediaPeers(deps: {
  readonly federation: Federation
  readonly client: GuardedClient
}): MediaPeers {
  const { federation, client } = deps

  async function download<T>(mxc: Mxc, maxBytes: number, take: (file: PeerFile) => Promise<T>): Promise<T> {
    const limits = { timeoutMs: BEGIN_MS, bodyMs: BODY_MS, maxBytes: maxBytes + WRAPPING_BYTES }
    const wait = `timeout_ms=${UPLOAD_WAIT_MS}`
    const path = `federation/v1/media/download/${mxc.mediaId}?${wait}`
    const answer = await federation.stream(mxc.server, { method: 'GET', path, signed: true, ...limits })
    if (!answer.ok || isStream(answer)) return received(mxc, answer, (stream) => unwrap(mxc, stream, maxBytes, take))
    if (!knowsNot(answer)) throw refusalOf(mxc, answer)
    const old = `media/v3/download/${encodeURIComponent(mxc.server)}/${mxc.mediaId}?allow_remote=false&${wait}`
    const second = await federation.stream(mxc.server, {
      ...{ method: 'GET', path: old, redirects: MAX_REDIRECTS },
      ...limits,
    })
    return received(mxc, second, (stream) => plain(mxc, stream, maxBytes, take))
  }

  async function unwrap<T>(
    mxc: Mxc,
    { headers, body, cancel }: HttpStream,
    maxBytes: number,
    take: (file: PeerFile) => Promise<T>,
  ): Promise<T> {
    const boundary = boundaryOf(headers['content-type'])
    if (boundary === undefined) {
      cancel()
      throw senseless(mxc)
    }
    let isFirst = true
    for await (const { headers: about, body: bytes } of partsOf(body, boundary)) {
      if (isFirst) {
        // The first part is metadata, which says nothing about the file yet.
        for await (const _chunk of bytes);
        isFirst = false
        continue
      }
      const location = about.get('location')
      // Leaving the loop closes the stream, so the file must be read first.
      if (location === undefined) return await take(fileOf((name) => about.get(name), bytes))
      cancel()
      return await elsewhere(mxc, location, maxBytes, take)
    }
    throw senseless(mxc)
  }

  /** Fetches a location that the other server names. It may be anywhere, so the request is unsigned and never goes to our own network. */
  async function elsewhere<T>(
    mxc: Mxc,
    url: string,
    maxBytes: number,
    take: (file: PeerFile) => Promise<T>,
  ): Promise<T> {
    if (!/^https:/i.test(url)) throw senseless(mxc)
    const answer = await client.stream({
      ...{ method: 'GET', url, timeoutMs: BEGIN_MS, bodyMs: BODY_MS, maxBytes, redirects: MAX_REDIRECTS },
    })
    return received(mxc, answer, (stream) => plain(mxc, stream, maxBytes, take))
  }

  return { download }
}

type Answer = Awaited<ReturnType<Federation['stream']>>

const isStream = (answer: HttpStream | FederationAnswer): answer is HttpStream => 'cancel' in answer

async function received<T>(mxc: Mxc, answer: Answer, read: (stream: HttpStream) => Promise<T>): Promise<T> {
  if (!answer.ok && answer.kind === 'forbidden') throw new ProtocolError('M_FORBIDDEN', answer.detail)
  if (!answer.ok) throw unreachable(mxc, answer.detail)
  if (!isStream(answer)) throw refusalOf(mxc, answer)
  try {
    return await read(answer)
  } catch (error) {
    answer.cancel()
    throw error instanceof ProtocolError ? error : brokenOff(mxc, error)
  }
}

async function plain<T>(
  mxc: Mxc,
  { status, headers, body, cancel }: HttpStream,
  maxBytes: number,
  take: (file: PeerFile) => Promise<T>,
): Promise<T> {
  if (status !== 200) throw unreachable(mxc, `it answered ${status}`)
  if (Number(headers['content-length'] ?? 0) > maxBytes) {
    cancel()
    throw tooLarge(mxc)
  }
  return take(fileOf((name) => headers[name], body))
}

function fileOf(header: (name: string) => string | undefined, body: AsyncIterable<Buffer>): PeerFile {
  return { contentType: header('content-type'), fileName: fileNameIn(header('content-disposition')), body }
}

/** Error codes about the file, as opposed to the request. */
const ABOUT_MEDIA: ReadonlySet<unknown> = new Set(['M_NOT_FOUND', 'M_NOT_YET_UPLOADED', 'M_TOO_LARGE'])

/** Whether the server does not know the endpoint. A server that does not have the file says so with an error code. */
function knowsNot({ status, body }: FederationAnswer): boolean {
  const errcode = isObject(body) ? body.errcode : undefined
  if (status === 400) return !ABOUT_MEDIA.has(errcode)
  return errcode === 'M_UNRECOGNIZED' || ((status === 404 || status === 405) && errcode !== 'M_NOT_FOUND')
}

function refusalOf(mxc: Mxc, { status, body }: FederationAnswer): ProtocolError {
  const errcode = isObject(body) ? body.errcode : undefined
  if (status === 404) return new ProtocolError('M_NOT_FOUND', `${mxc.server} has no such media.`)
  if (errcode === 'M_NOT_YET_UPLOADED') return new ProtocolError(errcode, 'This media is not uploaded yet.')
  if (errcode === 'M_TOO_LARGE') return tooLarge(mxc)
  return unreachable(mxc, `it answered ${status}`)
}

function brokenOff(mxc: Mxc, error: unknown): ProtocolError {
  const { kind, detail } = failureOf(error)
  return kind === 'too-large' ? tooLarge(mxc) : unreachable(mxc, detail)
}

function tooLarge({ server }: Mxc): ProtocolError {
  return new ProtocolError('M_TOO_LARGE', `This media of ${server} is too large to be fetched.`, { status: 502 })
}

function senseless(mxc: Mxc): ProtocolError {
  return unreachable(mxc, 'its answer makes no sense')
}

function unreachable({ server }: Mxc, detail: string): ProtocolError {
  return new ProtocolError('M_UNKNOWN', `The server ${server} does not give this media: ${detail}.`, { status: 502 })
}
