import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { MediaStore } from '../../domain/media/media-store.ts'
import { openMediaStore } from '../../domain/media/open-store.ts'
import type { Database } from '../../store/db/db.ts'
import { type ContentRow, contentsAfter } from '../../store/media/media-contents.ts'

export type StoreName = Config['media']['store']

/** One of the two stores, whichever the configuration has in use. @throws Error if the options of S3 are missing */
export function openStore(
  config: Config,
  name: StoreName,
  log: Logger,
): { readonly store: MediaStore; close(): Promise<void> } {
  if (name === 's3') {
    for (const key of ['endpoint', 'bucket', 'access_key_id', 'secret_access_key'] as const)
      if (config.media.s3[key] === undefined) throw new Error(`this needs media.s3.${key}`)
  }
  return openMediaStore({ config: { ...config, media: { ...config.media, store: name } }, log })
}

const PAGE = 500

/** All contents, in order of their hashes. */
export async function* allContents(db: Database): AsyncGenerator<ContentRow> {
  for (let after: Buffer = Buffer.alloc(0); ; ) {
    const page = await contentsAfter(db, after, PAGE)
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)!.digest
  }
}

export type Found = 'good' | 'missing' | 'damaged'

/** Reads a content to its end, and compares its hash and its length. */
export async function checkContent(store: MediaStore, { digest, bytes }: ContentRow): Promise<Found> {
  const stream = await store.open(digest)
  if (stream === undefined) return 'missing'
  const hash = createHash('sha256')
  let seen = 0
  for await (const piece of stream as AsyncIterable<Buffer>) {
    hash.update(piece)
    seen += piece.length
  }
  return seen === bytes && hash.digest().equals(digest) ? 'good' : 'damaged'
}

/** Whether a store has a content, by its first byte. Stores take only whole files whose hash is right. */
export async function isIn(store: MediaStore, { digest, bytes }: ContentRow): Promise<boolean> {
  const stream: Readable | undefined = await store.open(digest, bytes === 0 ? undefined : { first: 0, last: 0 })
  stream?.destroy()
  return stream !== undefined
}

/** Works through contents, a few at a time. Fails with the first failure, after those that were running have ended. */
export async function eachContent(
  contents: AsyncIterable<ContentRow>,
  atOnce: number,
  work: (content: ContentRow) => Promise<void>,
): Promise<void> {
  const left = contents[Symbol.asyncIterator]()
  let hasFailed = false
  const next = async (): Promise<void> => {
    for (let item = await left.next(); !item.done && !hasFailed; item = await left.next()) await work(item.value)
  }
  const ends = Array.from({ length: atOnce }, () =>
    next().catch((error: unknown) => {
      hasFailed = true
      throw error
    }),
  )
  const failed = (await Promise.allSettled(ends)).find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}
