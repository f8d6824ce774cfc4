import type { IncomingMessage } from 'node:http'
import { MAX_KEPT_BODY_BYTES, MAX_KEPT_BODY_BYTES_IN_ALL } from '../../domain/limits/cluster.ts'
import { ArrivingBodies } from '../arriving-bodies.ts'

/** Short bodies, kept until their requests are answered, so that the requests can be repeated. */
export interface KeptBodies {
  /**
   * Reads a body. Undefined for one that is passed on as it comes: it is long, or too many are kept.
   *
   * @throws TooSlow; Error if the client is gone
   */
  keep(request: IncomingMessage): Promise<Buffer | undefined>
  /** To be called once for each body that was kept. */
  free(request: IncomingMessage): void
}

/** The body came more slowly than bodies may. */
export class TooSlow extends Error {}

const SECOND_MS = 1_000
const NO_BODY = Buffer.alloc(0)

/** @param secondMs the length of a second; shorter in tests */
export function createKeptBodies(secondMs = SECOND_MS): KeptBodies {
  const arriving = new ArrivingBodies(secondMs)
  let keptBytes = 0
  const bytesOf = ({ headers }: IncomingMessage) => Number(headers['content-length'] ?? 0)

  /** Within the time in which the node that serves would read it: nobody else can be kept waiting for the room that it takes. */
  function readAll(request: IncomingMessage): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      const body = { bytes: 0, seconds: 0, isFile: false, tooSlow: () => end(() => reject(new TooSlow())) }
      const take = (chunk: Buffer): void => {
        body.bytes += chunk.length
        chunks.push(chunk)
      }
      const arrived = (): void => end(() => resolve(Buffer.concat(chunks)))
      const brokeOff = (): void => end(() => reject(new Error('the request broke off')))
      const end = (settle: () => void): void => {
        arriving.leave(body)
        request.off('data', take).off('end', arrived).off('close', brokeOff)
        settle()
      }
      arriving.enter(body)
      request.on('data', take).on('end', arrived).on('close', brokeOff)
    })
  }

  return {
    async keep(request) {
      const bytes = request.headers['transfer-encoding'] === undefined ? bytesOf(request) : Number.POSITIVE_INFINITY
      // Its end may have been read already, and would not come again.
      if (bytes === 0) return NO_BODY
      if (!(bytes <= MAX_KEPT_BODY_BYTES && keptBytes + bytes <= MAX_KEPT_BODY_BYTES_IN_ALL)) return undefined
      keptBytes += bytes
      try {
        return await readAll(request)
      } catch (error) {
        keptBytes -= bytes
        throw error
      }
    },
    free(request) {
      keptBytes -= bytesOf(request)
    },
  }
}
