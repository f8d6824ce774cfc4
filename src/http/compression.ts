import { pipeline, type Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { COMPRESSED_FROM_BYTES, MAX_COMPRESSIONS, MAX_COMPRESSIONS_PER_NETWORK } from '../domain/limits/compression.ts'
import { networkOf } from '../domain/network.ts'
import { type Addressed, addressOf } from './address.ts'
import type { AddressReader } from './client-address.ts'

/** A body before it is compressed. */
export type Plain = string | Buffer | Readable

/**
 * Compresses large answers on the threads of zlib, a piece at a time, as fast as the client reads.
 *
 * Whoever can add to an answer and measure its length on the wire may guess what else is in it (BREACH). Answers that hold a token or a key
 * in the clear are short, and never compressed.
 */
export interface Compression {
  /** The compressed body, if the client takes it; undefined if not, and while too many are under way. */
  compress(request: Addressed, body: Plain): Readable | undefined
}

/** Measured with a first sync: level 6 takes more than twice the time, for answers that are 8 % shorter. */
const LEVEL = 1
const PIECE_BYTES = 64 * 1024

export function createCompression(readAddress: AddressReader): Compression {
  const ofNetwork = new Map<string, number>()
  let underWay = 0

  function leave(network: string): void {
    underWay--
    const left = ofNetwork.get(network)! - 1
    if (left > 0) ofNetwork.set(network, left)
    else ofNetwork.delete(network)
  }

  return {
    compress(request, body) {
      if (underWay >= MAX_COMPRESSIONS || !takesGzip(request.headers['accept-encoding'])) return undefined
      const network = networkOf(addressOf(request, readAddress))
      const others = ofNetwork.get(network) ?? 0
      if (others >= MAX_COMPRESSIONS_PER_NETWORK) return undefined
      underWay++
      ofNetwork.set(network, others + 1)
      const gzip = createGzip({ level: LEVEL, chunkSize: PIECE_BYTES })
      gzip.once('close', () => leave(network))
      if (isWhole(body)) gzip.end(body)
      // If one of them fails or is broken off, so is the other; whoever sends the answer hears of it.
      else pipeline(body, gzip, () => {})
      return gzip
    },
  }
}

/** Whether a body is worth compressing; one that is made in pieces is. */
export function isLarge(body: Plain): boolean {
  return !isWhole(body) || body.length >= COMPRESSED_FROM_BYTES
}

export function isWhole(body: Plain): body is string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body)
}

/** Whether an `Accept-Encoding` header names gzip, or everything, with a weight above 0 (RFC 9110, section 12.5.3). */
export function takesGzip(accepted: string | undefined): boolean {
  let everything = false
  for (const each of (accepted ?? '').toLowerCase().split(',')) {
    const [coding, ...parameters] = each.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    const isWanted = weight === undefined || Number(weight.slice(2)) > 0
    if (coding === 'gzip' || coding === 'x-gzip') return isWanted
    if (coding === '*') everything = isWanted
  }
  return everything
}
