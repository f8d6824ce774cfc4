import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import type { Config } from '../../config/schema.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { MediaStore } from './media-store.ts'
import { StoreFailure } from './store-failure.ts'

/** The time until a service answers, which includes sending a whole file. */
const ANSWER_MS = 10_000
const PUT_MS = 300_000
/** A client may download slowly. */
const GET_MS = 3_600_000
const MAX_ANSWER_BYTES = 65_536

type S3Config = Config['media']['s3']

/**
 * Objects of an S3-compatible service, addressed by path. Each is sent in one request whose signature covers its SHA-256, so a damaged
 * upload is refused.
 *
 * @param client connects only to this service, with one connection per download
 */
export function createS3Store(config: S3Config, client: () => Promise<GuardedClient>): MediaStore {
  const { endpoint = '', bucket = '', prefix } = config

  function urlOf(digest: Buffer): string {
    const hex = digest.toString('hex')
    return `${endpoint.replace(/\/+$/, '')}/${bucket}/${prefix}${hex.slice(0, 2)}/${hex}`
  }

  async function call(method: 'PUT' | 'DELETE', digest: Buffer, more: { body?: Readable; headers?: HeaderMap } = {}) {
    const url = urlOf(digest)
    const { body, headers = {} } = more
    const signed = await sign(config, method, url, { ...headers, 'x-amz-content-sha256': bodyHashOf(method, digest) })
    const answer = await (await client()).request({
      ...{ method, url, headers: { ...headers, ...signed }, timeoutMs: PUT_MS, maxBytes: MAX_ANSWER_BYTES },
      body,
    })
    if (!answer.ok) throw new StoreFailure(new Error(`${method} ${url}: ${answer.detail}`))
    const isDone = (answer.status >= 200 && answer.status <= 299) || (method === 'DELETE' && answer.status === 404)
    if (!isDone) throw new StoreFailure(new Error(`${method} ${url}: ${textOf(answer.status, answer.body)}`))
  }

  return {
    async put({ path, digest, bytes }) {
      const body = createReadStream(path)
      try {
        await call('PUT', digest, { body, headers: { 'content-length': String(bytes) } })
      } finally {
        body.destroy()
      }
    },
    async open(digest, range) {
      const url = urlOf(digest)
      const headers = range === undefined ? {} : { range: `bytes=${range.first}-${range.last}` }
      const signed = await sign(config, 'GET', url, { ...headers, 'x-amz-content-sha256': EMPTY_HASH })
      const answer = await (await client()).stream({
        ...{ method: 'GET', url, headers: { ...headers, ...signed }, maxBytes: Number.MAX_SAFE_INTEGER },
        ...{ timeoutMs: ANSWER_MS, bodyMs: GET_MS },
      })
      if (!answer.ok) throw new StoreFailure(new Error(`GET ${url}: ${answer.detail}`))
      if (answer.status === (range === undefined ? 200 : 206)) return Readable.from(answer.body, { objectMode: false })
      answer.cancel()
      if (answer.status === 404) return undefined
      throw new StoreFailure(new Error(`GET ${url}: ${textOf(answer.status)}`))
    },
    remove: (digest) => call('DELETE', digest),
  }
}

type HeaderMap = Readonly<Record<string, string>>

const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const bodyHashOf = (method: string, digest: Buffer): string => (method === 'PUT' ? digest.toString('hex') : EMPTY_HASH)

async function sign(config: S3Config, method: string, url: string, headers: HeaderMap): Promise<HeaderMap> {
  const { AwsV4Signer } = await import('aws4fetch')
  const { access_key_id: accessKeyId = '', secret_access_key: secretAccessKey = '', region } = config
  const signer = new AwsV4Signer({ method, url, headers, accessKeyId, secretAccessKey, region, service: 's3' })
  return Object.fromEntries((await signer.sign()).headers)
}

/** The service gives its reason in XML. */
function textOf(status: number, body: Buffer = Buffer.alloc(0)): string {
  const code = /<Code>(\w{1,100})<\/Code>/.exec(body.toString('utf8'))?.[1]
  return code === undefined ? `it answered ${status}` : `it answered ${status} ${code}`
}
