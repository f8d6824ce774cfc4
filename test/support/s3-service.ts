import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'

export const S3_KEYS = { access_key_id: 'S3RVER', secret_access_key: 'S3RVER', bucket: 'hearth-media' }

/** A service that speaks S3, on loopback, with a bucket. */
export interface S3Service {
  readonly endpoint: string
  stop(): Promise<void>
  /** With what it had before. */
  start(): Promise<void>
  close(): Promise<void>
}

export async function startS3Service(): Promise<S3Service> {
  const directory = mkdtempSync(join(tmpdir(), 'hearth-s3-'))
  const open = async (port: number) => {
    const buckets = [{ name: S3_KEYS.bucket, configs: [] }]
    const server = new S3rver({ port, address: '127.0.0.1', silent: true, directory, configureBuckets: buckets })
    const { port: found } = await server.run()
    return { server, port: found }
  }
  let { server, port } = await open(0)
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () => server.close(),
    async start() {
      ;({ server, port } = await open(port))
    },
    async close() {
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
