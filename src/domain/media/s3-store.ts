import { createReadStream } from 'node:fs'
import type { GuardedClient } from '../../outbound/http.ts'
import type { MediaStore } from './media-store.ts'
import { createS3Bucket, type S3Config } from './s3-bucket.ts'
import { StoreFailure } from './store-failure.ts'

/** Files as objects of an S3-compatible service. @param client connects only to this service, with one connection per download */
export function createS3Store(config: S3Config, client: () => Promise<GuardedClient>): MediaStore {
  const bucket = createS3Bucket(config, client)
  const nameOf = (digest: Buffer): string => {
    const hex = digest.toString('hex')
    return `${hex.slice(0, 2)}/${hex}`
  }
  const orFailure = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw new StoreFailure(error)
    })

  return {
    async put({ path, digest, bytes }) {
      const body = createReadStream(path)
      try {
        await orFailure(bucket.put(nameOf(digest), body, bytes, digest.toString('hex')))
      } finally {
        body.destroy()
      }
    },
    open: (digest, range) => orFailure(bucket.open(nameOf(digest), range)),
    remove: (digest) => orFailure(bucket.remove(nameOf(digest))),
  }
}
