import { createHash } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import type { JsonObject } from '../../core/json.ts'
import { IMAGE_HEADER_BYTES, readImageHeader } from '../../core/media/image-header.ts'
import { writeMxc } from '../../core/mxc.ts'
import type { GuardedClient, HttpStream } from '../../outbound/http.ts'
import type { Database } from '../../store/db/db.ts'
import { insertMedia } from '../../store/media/media.ts'
import { findPreview, putPreview } from '../../store/media/url-previews.ts'
import type { Clock, Random } from '../clock.ts'
import { MAX_PAGE_BYTES, MAX_PREVIEW_IMAGE_BYTES, MAX_PREVIEWS_AT_ONCE, MAX_URL_CHARS } from '../limits.ts'
import type { Library } from './library.ts'
import { readPage } from './page-reader.ts'
import { pageText } from './page-text.ts'
import { createSlots } from './slots.ts'
import type { Spool } from './spool.ts'

/** Previews links for users, so that not every client visits the page. */
export interface Previews {
  /**
   * OpenGraph properties of a page, with its image as an `mxc://` URI; `{}` for a page without any, or one that cannot be fetched.
   * @throws ProtocolError `M_FORBIDDEN` if previews are off, or the host may not be asked; `M_INVALID_PARAM`; `M_LIMIT_EXCEEDED`
   */
  of(url: string): Promise<JsonObject>
}

const KEPT_MS = 60 * 60 * 1000
/** Clients show a preview for longer than this server caches it. */
const IMAGE_KEPT_MS = 7 * 24 * 60 * 60 * 1000
const TIMEOUT_MS = 10_000
const MAX_REDIRECTS = 5
const MEDIA_ID_BYTES = 18

export function createPreviews(deps: {
  readonly config: Pick<Config, 'server_name' | 'media'>
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly client: GuardedClient
  readonly spool: Spool
  readonly library: Library
}): Previews {
  const { config, db, clock, random, client, spool, library } = deps
  const { enabled, allowed_hosts, blocked_hosts } = config.media.url_previews
  const isAllowed = compileGlobs(allowed_hosts.map((pattern) => pattern.toLowerCase()))
  const isBlocked = compileGlobs(blocked_hosts.map((pattern) => pattern.toLowerCase()))
  const underWay = new Map<string, Promise<JsonObject>>()
  const slots = createSlots({ perKey: MAX_PREVIEWS_AT_ONCE, total: MAX_PREVIEWS_AT_ONCE, waitingPerKey: 100 })

  const mayAsk = ({ hostname }: URL): boolean =>
    !isBlocked(hostname) && (allowed_hosts.length === 0 || isAllowed(hostname))

  /** The same rules apply to every request, including images and redirects. */
  async function get(url: URL, maxBytes: number): Promise<HttpStream | undefined> {
    if (!/^https?:$/.test(url.protocol) || !mayAsk(url)) return undefined
    const headers = { accept: 'text/html,image/*;q=0.9,*/*;q=0.1', 'accept-language': 'en' }
    const answer = await client.stream({
      ...{ method: 'GET', url: url.href, headers, maxBytes, timeoutMs: TIMEOUT_MS, bodyMs: TIMEOUT_MS },
      ...{ redirects: MAX_REDIRECTS, mayFollow: mayAsk },
    })
    if (!answer.ok) return undefined
    if (answer.status === 200) return answer
    answer.cancel()
    return undefined
  }

  /** The image becomes local media, for a while. */
  async function imageAt(url: URL): Promise<JsonObject> {
    const answer = await get(url, MAX_PREVIEW_IMAGE_BYTES)
    return answer === undefined ? {} : keepImage(answer)
  }

  async function keepImage({ body }: HttpStream): Promise<JsonObject> {
    const file = await spool.take(body, MAX_PREVIEW_IMAGE_BYTES)
    const header = readImageHeader(await spool.beginning(file, IMAGE_HEADER_BYTES))
    if (header === undefined) {
      await file.discard()
      return {}
    }
    const mxc = { server: config.server_name, mediaId: random.bytes(MEDIA_ID_BYTES).toString('base64url') }
    const media = {
      ...{ server_name: mxc.server, media_id: mxc.mediaId, user_nid: null, digest: file.digest, file_name: null },
      ...{ content_type: header.type, expires_at: clock.now() + IMAGE_KEPT_MS, is_open: false },
    }
    await library.keep(file, (tx, now) => insertMedia(tx, media, now))
    return {
      'og:image': writeMxc(mxc),
      'og:image:type': header.type,
      'og:image:width': header.width,
      'og:image:height': header.height,
      'matrix:image:size': file.bytes,
    }
  }

  async function pageAt(answer: HttpStream, contentType: string): Promise<JsonObject> {
    const { properties, image } = await readPage(pageText(await beginningOf(answer.body), contentType))
    const others = [...properties].filter(([name]) => !name.startsWith('og:image'))
    const picture = image !== undefined && URL.canParse(image, answer.url) ? new URL(image, answer.url) : undefined
    const shown = picture === undefined ? {} : await imageAt(picture).catch(() => ({}))
    return { ...Object.fromEntries(others), ...shown }
  }

  async function look(url: URL): Promise<JsonObject> {
    const answer = await get(url, Number.MAX_SAFE_INTEGER)
    if (answer === undefined) return {}
    const contentType = answer.headers['content-type'] ?? ''
    if (/^image\//i.test(contentType)) return keepImage(answer)
    if (/^(?:text\/html|application\/xhtml\+xml)\b/i.test(contentType)) return pageAt(answer, contentType)
    answer.cancel()
    return {}
  }

  async function preview(url: URL, digest: Buffer): Promise<JsonObject> {
    const known = await findPreview(db, digest, clock.now())
    if (known !== undefined) return known
    const body = await slots.run('', () => look(url).catch(nothing))
    await db.tx((tx) => putPreview(tx, digest, body, clock.now() + KEPT_MS))
    return body
  }

  return {
    async of(text) {
      if (!enabled) throw new ProtocolError('M_FORBIDDEN', 'Previews of web pages are switched off on this server.')
      const isUrl = text.length <= MAX_URL_CHARS && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
      if (!isUrl) throw new ProtocolError('M_INVALID_PARAM', "'url' is no address of a web page.")
      const url = new URL(text)
      url.hash = ''
      if (url.username !== '' || url.password !== '' || !mayAsk(url))
        throw new ProtocolError('M_FORBIDDEN', 'This server shows no previews of this address.')
      const digest = createHash('sha256').update(url.href).digest()
      const running = underWay.get(url.href)
      if (running !== undefined) return running
      const started = preview(url, digest).finally(() => underWay.delete(url.href))
      underWay.set(url.href, started)
      return started
    },
  }
}

/** A page that breaks off or is too large has no preview. An error of this server is thrown. */
function nothing(error: unknown): JsonObject {
  if (error instanceof ProtocolError && error.status !== 413) throw error
  return {}
}

/** A page's description of itself is at its beginning. */
async function beginningOf(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= MAX_PAGE_BYTES) break
  }
  return Buffer.concat(chunks)
}
