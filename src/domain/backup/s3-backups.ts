import { createReadStream } from 'node:fs'
import type { S3Bucket } from '../media/s3-bucket.ts'
import type { Spool } from '../media/spool.ts'
import type { BackupStore } from './backup-store.ts'

/**
 * Backups in an S3 service, below a prefix of a bucket.
 *
 * @param spool holds a file while it is hashed and sent: the service wants its length and hash first
 */
export function createS3Backups(
  place: string,
  prefix: string,
  bucket: S3Bucket,
  spool: Spool,
  close: () => Promise<void>,
): BackupStore {
  const at = prefix === '' ? '' : `${prefix.replace(/\/+$/, '')}/`
  return {
    place,
    async *list(beginning) {
      for await (const name of bucket.list(at + beginning)) yield name.slice(at.length)
    },
    open: (name) => bucket.open(at + name),
    async write(name, source) {
      const file = await spool.take(source, Number.MAX_SAFE_INTEGER)
      const sha256 = file.digest.toString('hex')
      const body = createReadStream(file.path)
      try {
        await bucket.put(at + name, body, file.bytes, sha256)
        return { bytes: file.bytes, sha256 }
      } finally {
        body.destroy()
        await file.discard()
      }
    },
    remove: (name) => bucket.remove(at + name),
    removeLastingly: (name) => bucket.remove(at + name),
    free: async () => undefined,
    tidy: async () => {},
    close,
  }
}
