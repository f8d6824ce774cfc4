import { Readable } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import type { ByteRange } from '../../core/media/byte-range.ts'
import type { GuardedClient } from '../../outbound/http.ts'

/** The time until a service answers, which includes sending a whole file. */
const ANSWER_MS = 10_000
const PUT_MS = 300_000
/** A client may download slowly. */
const GET_MS = 3_600_000
const MAX_ANSWER_BYTES = 65_536
/** A page of a list: a thousand names of at most 1024 bytes, each with some facts. */
const MAX_LIST_BYTES = 4 * 1024 * 1024

export type S3Config = Config['media']['s3']

/**
 * Objects of an S3-compatible service, addressed by path. Each is sent in one request whose signature covers its SHA-256, so a damaged
 * upload is refused. All functions throw an Error with the request and what the service answered.
 */
export interface S3Bucket {
  put(name: string, body: Readable, bytes: number, sha256: string): Promise<void>
  /** @returns undefined if there is no such object */
  open(name: string, range?: ByteRange): Promise<Readable | undefined>
  /** Succeeds for a missing object too. */
  remove(name: string): Promise<void>
  /** The names that begin like this, in order. */
  list(beginning: string): AsyncIterable<string>
}

/** @param client connects only to this service, with one connection per download */
export function createS3Bucket(config: S3Config, client: () => Promise<GuardedClient>): S3Bucket {
  const { endpoint = '', bucket = '', prefix } = config
  const root = `${endpoint.replace(/\/+$/, '')}/${bucket}`
  const urlOf = (name: string) => `${root}/${prefix}${name}`

  async function call(
    method: 'PUT' | 'DELETE',
    name: string,
    hash: string,
    more: { body?: Readable; headers?: HeaderMap } = {},
  ) {
    const url = urlOf(name)
    const { body, headers = {} } = more
    const signed = await sign(config, method, url, { ...headers, 'x-amz-content-sha256': hash })
    const answer = await (await client()).request({
      ...{ method, url, headers: { ...headers, ...signed }, timeoutMs: PUT_MS, maxBytes: MAX_ANSWER_BYTES },
      body,
    })
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.detail}`)
    const isDone = (answer.status >= 200 && answer.status <= 299) || (method === 'DELETE' && answer.status === 404)
    if (!isDone) throw new Error(`${method} ${url}: ${failureText(answer.status, answer.body)}`)
  }

  async function page(beginning: string, continuation: string | undefined): Promise<string> {
    const query = new URLSearchParams({ 'list-type': '2', prefix: prefix + beginning })
    if (continuation !== undefined) query.set('continuation-token', continuation)
    const url = `${root}?${query.toString().replaceAll('+', '%20')}`
    const headers = await sign(config, 'GET', url, { 'x-amz-content-sha256': EMPTY_HASH })
    const answer = await (await client()).request({
      ...{ method: 'GET', url, headers, timeoutMs: PUT_MS, maxBytes: MAX_LIST_BYTES },
    })
    if (!answer.ok) throw new Error(`GET ${url}: ${answer.detail}`)
    if (answer.status !== 200) throw new Error(`GET ${url}: ${failureText(answer.status, answer.body)}`)
    return answer.body.toString('utf8')
  }

  return {
    put: (name, body, bytes, sha256) =>
      call('PUT', name, sha256, { body, headers: { 'content-length': String(bytes) } }),
    async open(name, range) {
      const url = urlOf(name)
      const headers = range === undefined ? {} : { range: `bytes=${range.first}-${range.last}` }
      const signed = await sign(config, 'GET', url, { ...headers, 'x-amz-content-sha256': EMPTY_HASH })
      const answer = await (await client()).stream({
        ...{ method: 'GET', url, headers: { ...headers, ...signed }, maxBytes: Number.MAX_SAFE_INTEGER },
        ...{ timeoutMs: ANSWER_MS, bodyMs: GET_MS },
      })
      if (!answer.ok) throw new Error(`GET ${url}: ${answer.detail}`)
      if (answer.status === (range === undefined ? 200 : 206)) return Readable.from(answer.body, { objectMode: false })
      answer.cancel()
      if (answer.status === 404) return undefined
      throw new Error(`GET ${url}: ${failureText(answer.status)}`)
    },
    remove: (name) => call('DELETE', name, EMPTY_HASH),
    async *list(beginning) {
      let continuation: string | undefined
      do {
        const xml = await page(beginning, continuation)
        for (const [, name] of xml.matchAll(/<Key>([^<]{1,8000})<\/Key>/g)) yield plain(name!).slice(prefix.length)
        const next = /<NextContinuationToken>([^<]{1,8000})<\/NextContinuationToken>/.exec(xml)?.[1]
        continuation = next === undefined ? undefined : plain(next)
      } while (continuation !== undefined)
    },
  }
}

type HeaderMap = Readonly<Record<string, string>>

const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

async function sign(config: S3Config, method: string, url: string, headers: HeaderMap): Promise<HeaderMap> {
  const { AwsV4Signer } = await import('aws4fetch')
  const { access_key_id: accessKeyId = '', secret_access_key: secretAccessKey = '', region } = config
  const signer = new AwsV4Signer({ method, url, headers, accessKeyId, secretAccessKey, region, service: 's3' })
  return Object.fromEntries((await signer.sign()).headers)
}

/** The service gives its reason in XML. */
function failureText(status: number, body: Buffer = Buffer.alloc(0)): string {
  const code = /<Code>(\w{1,100})<\/Code>/.exec(body.toString('utf8'))?.[1]
  return code === undefined ? `it answered ${status}` : `it answered ${status} ${code}`
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const plain = (xml: string): string => xml.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => ENTITIES[name]!)
