import { MAX_NEWS_FRAME_BYTES } from '../../domain/limits/cluster.ts'
import type { AskedSync } from '../../domain/standby/sync-desk.ts'

/** How a node asks to follow what wakes syncs: an upgrade of a request to this path, to this protocol. */
export const NEWS_PATH = '/_hearth/node/news'
export const NEWS_PROTOCOL = 'hearth-news-1'

/**
 * How a thread of the node that serves then connects to the other one: to this path, with the word that the other one chose. From there on, each
 * byte that comes asks for the version, a number of so many bytes.
 */
const VERSION_PATH = '/_hearth/node/version/'
export const VERSION_PROTOCOL = 'hearth-version-1'
export const VERSION_BYTES = 8
/** The node may have changed, or may serve no more: its own event loop has to be asked. */
export const UNKNOWN_VERSION = -1

export const versionPath = (word: string): string => VERSION_PATH + encodeURIComponent(word)
/** The word in such a path; empty if it is another one. */
export const wordIn = (path: string): string => (path.startsWith(VERSION_PATH) ? path.slice(VERSION_PATH.length) : '')

/** In the answer to a request for news: the node has such a thread. Releases before had none. */
export const HAS_VERSION = 'x-hearth-has-version'
/** In the answer to a request for news: the node also takes requests of clients in batches. Releases before did not. */
export const TAKES_BATCHES = 'x-hearth-takes-batches'

/**
 * What the two say to each other. From the node that serves: `beat`, that it still does; `wakes`, the rooms and users whose syncs wake, and
 * sessions that ended; `answer`, to what has a number; `batched`, answers to requests. To it: `look`, at syncs; `verify`, whether a session
 * goes on; `ping`, where the streams stand, which is answered after all wakes before it; `batch`, requests of clients; `connect`, where
 * its thread is to connect to.
 */
export type FrameKind = 'beat' | 'wakes' | 'answer' | 'look' | 'verify' | 'ping' | 'batch' | 'batched' | 'connect'

const KINDS: readonly FrameKind[] = ['beat', 'wakes', 'answer', 'look', 'verify', 'ping', 'batch', 'batched', 'connect']
/** Bytes of all that follows, of the kind, and of the head. */
const PREFIX_BYTES = 9

export interface Frame {
  readonly kind: FrameKind
  /** JSON. */
  readonly head: string
  readonly body: Buffer
}

/** One of the syncs that a `look` brings. */
export interface NumberedSync extends AskedSync {
  readonly id: number
}

/** The head of a `connect`: where the other node listens, and the word by which it knows who comes. */
export interface VersionCall {
  readonly address: string
  readonly word: string
}

/** The head of a `verify`, and of a `ping`. */
export interface NumberedQuestion {
  readonly id: number
  readonly tokenNid?: number
}

const NOTHING = Buffer.alloc(0)

/** @param head JSON */
export function frameOf(kind: FrameKind, head: string, body: string | Buffer = NOTHING): Buffer {
  const headBytes = Buffer.byteLength(head)
  const bodyBytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + headBytes + bodyBytes)
  frame.writeUInt32LE(frame.length - 4, 0)
  frame.writeUInt8(KINDS.indexOf(kind), 4)
  frame.writeUInt32LE(headBytes, 5)
  frame.write(head, PREFIX_BYTES)
  if (typeof body === 'string') frame.write(body, PREFIX_BYTES + headBytes)
  else body.copy(frame, PREFIX_BYTES + headBytes)
  return frame
}

/** The other side does not speak as agreed. */
export class BrokenFrame extends Error {}

/** Cuts what comes into frames. */
export class FrameReader {
  #left: Buffer = NOTHING

  /** @throws BrokenFrame */
  read(chunk: Buffer): Frame[] {
    const frames: Frame[] = []
    let bytes = this.#left.length === 0 ? chunk : Buffer.concat([this.#left, chunk])
    while (bytes.length >= PREFIX_BYTES) {
      const end = 4 + bytes.readUInt32LE(0)
      const kind = KINDS[bytes.readUInt8(4)]
      const bodyAt = PREFIX_BYTES + bytes.readUInt32LE(5)
      if (kind === undefined || end > MAX_NEWS_FRAME_BYTES || bodyAt > end) throw new BrokenFrame('no such frame')
      if (bytes.length < end) break
      frames.push({ kind, head: bytes.toString('utf8', PREFIX_BYTES, bodyAt), body: bytes.subarray(bodyAt, end) })
      bytes = bytes.subarray(end)
    }
    this.#left = bytes
    return frames
  }
}
