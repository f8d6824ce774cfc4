import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { ProtocolError } from '../../core/errors.ts'
import type { ThumbnailSize } from '../../core/media/thumbnail-size.ts'
import { MAX_IMAGE_FRAMES, MAX_IMAGE_PIXELS, MAX_WAITING_THUMBNAILS } from '../limits.ts'

/** A thumbnail to be made from a file. */
export interface DecoderJob extends ThumbnailSize {
  /** The path of the image, and the path of its thumbnail. */
  readonly from: string
  readonly to: string
  /** Whether the thumbnail is animated if the image is. */
  readonly isAnimated: boolean
}

/**
 * Decodes images in separate processes, so that a bug in a decoder does not harm the server. They have the lowest priority and none of
 * our secrets, and end when idle.
 */
export interface Decoder {
  /**
   * Returns the thumbnail's content type.
   * @throws ProtocolError 400 `M_UNKNOWN` for a file that cannot be decoded, 413 `M_TOO_LARGE` for one that takes too much memory or
   *   time, `M_LIMIT_EXCEEDED`
   */
  shrink(job: DecoderJob): Promise<string>
  close(): Promise<void>
}

interface Job extends DecoderJob {
  readonly resolve: (contentType: string) => void
  readonly reject: (error: Error) => void
}

type Verdict = { readonly isReady: true } | { readonly type: string } | { readonly refused: 'large' | 'broken' }

const PROCESSES = 2
const IDLE_MS = 30_000
const JOB_MS = 20_000
const HEAP_MB = 64

/** The program is text and not a file, so that it is the same from source and from the build. It reads only the formats in the list. */
const PROGRAM = `
const self = process
require('node:os').setPriority(19)
const sharp = require(self.argv[1])
sharp.concurrency(1)
sharp.cache(false)
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({ operation: ['VipsForeignLoadJpegFile', 'VipsForeignLoadPngFile', 'VipsForeignLoadWebpFile', 'VipsForeignLoadNsgifFile'] })
const FORMATS = new Set(['jpeg', 'png', 'webp', 'gif'])
async function shrink({ from, to, width, height, method, isAnimated, maxPixels, maxFrames }) {
  const options = { failOn: 'error', limitInputPixels: maxPixels, sequentialRead: true }
  const about = await sharp(from, options).metadata()
  if (!FORMATS.has(about.format)) return { refused: 'broken' }
  if (about.width * about.height > maxPixels) return { refused: 'large' }
  const frames = isAnimated && about.format !== 'png' ? (about.pages ?? 1) : 1
  const moves = frames > 1 && frames <= maxFrames && about.width * (about.pageHeight ?? about.height) * frames <= maxPixels
  const image = sharp(from, { ...options, pages: moves ? -1 : 1 })
  if (!moves) image.autoOrient()
  image.resize({ width, height, fit: method === 'crop' ? 'cover' : 'inside', withoutEnlargement: true })
  const type = moves ? 'webp' : about.hasAlpha ? 'png' : 'jpeg'
  await image.toFormat(type, type === 'jpeg' ? { quality: 80, mozjpeg: false } : type === 'webp' ? { quality: 75, effort: 2 } : {}).toFile(to)
  return { type: 'image/' + type }
}
self.on('disconnect', () => self.exit())
self.send({ isReady: true })
self.on('message', (job) => {
  shrink(job).catch((error) => ({ refused: /pixel limit|exceeds/i.test(String(error)) ? 'large' : 'broken' })).then((answer) => self.send(answer))
})
`

/** A child process that decodes one image at a time. */
class Hand {
  readonly #onFree: () => void
  readonly #onEnd: (hand: Hand) => void
  readonly #child: ChildProcess
  #job: Job | undefined
  #isReady = false
  #timer: NodeJS.Timeout | undefined

  constructor(onFree: () => void, onEnd: (hand: Hand) => void) {
    this.#onFree = onFree
    this.#onEnd = onEnd
    this.#child = fork(createRequire(import.meta.url).resolve('sharp'), [], {
      execArgv: [`--max-old-space-size=${HEAP_MB}`, '--eval', PROGRAM],
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'json',
    })
    this.#child.unref()
    this.#child.channel?.unref()
    this.#child.on('message', (verdict: Verdict) => {
      if ('isReady' in verdict) this.#isReady = true
      else this.#done(verdict)
    })
    this.#child.on('error', () => this.#end())
    this.#child.on('exit', () => this.#end())
  }

  get isFree(): boolean {
    return this.#job === undefined
  }

  run(job: Job): void {
    this.#job = job
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.stop(), JOB_MS)
    const { resolve: _resolve, reject: _reject, ...wanted } = job
    this.#child.send({ ...wanted, maxPixels: MAX_IMAGE_PIXELS, maxFrames: MAX_IMAGE_FRAMES })
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }

  #done(verdict: Exclude<Verdict, { readonly isReady: true }>): void {
    const job = this.#job
    this.#job = undefined
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.stop(), IDLE_MS).unref()
    if ('type' in verdict) job?.resolve(verdict.type)
    else job?.reject(verdict.refused === 'large' ? tooLarge() : undecodable())
    this.#onFree()
  }

  /** Ends a child that took too long or crashed. */
  #end(): void {
    clearTimeout(this.#timer)
    this.#job?.reject(this.#isReady ? tooLarge() : unavailable())
    this.#job = undefined
    this.#onEnd(this)
  }
}

export function createDecoder(): Decoder {
  const waiting: Job[] = []
  const hands = new Set<Hand>()

  function assign(): void {
    while (waiting.length > 0) {
      let hand = [...hands].find(({ isFree }) => isFree)
      if (hand === undefined && hands.size < PROCESSES) {
        hand = new Hand(assign, (ended) => {
          hands.delete(ended)
          assign()
        })
        hands.add(hand)
      }
      if (hand === undefined) return
      hand.run(waiting.shift() as Job)
    }
  }

  return {
    shrink: (job) =>
      new Promise((resolve, reject) => {
        if (waiting.length >= MAX_WAITING_THUMBNAILS) {
          const error = 'Too many thumbnails are being made. Try again in a few seconds.'
          reject(new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: 5_000 } }))
          return
        }
        waiting.push({ ...job, resolve, reject })
        assign()
      }),
    async close() {
      for (const hand of hands) hand.stop()
    },
  }
}

/** The package for this platform is not installed, or no process can be started. */
function unavailable(): ProtocolError {
  return new ProtocolError('M_UNKNOWN', 'This server cannot make thumbnails: its decoder of images does not start.', {
    status: 503,
  })
}

export function undecodable(): ProtocolError {
  return new ProtocolError('M_UNKNOWN', 'There are no thumbnails of this: it is no JPEG, PNG, GIF or WebP image.', {
    status: 400,
  })
}

export function tooLarge(): ProtocolError {
  return new ProtocolError('M_TOO_LARGE', 'This image is too large for thumbnails.')
}
