import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { NEWS_HEARTBEAT_MS, NEWS_RETRY_MAX_MS, VERSION_IDLE_MS } from '../../domain/limits/cluster.ts'
import { UNKNOWN_VERSION, VERSION_BYTES, VERSION_PROTOCOL, type VersionCall } from './news-frames.ts'

/** Where the streams of the node that serves stand, and at which version they did. */
export interface Positioned {
  readonly position?: string
  readonly version?: number
}

type Resolve = (version: number | undefined) => void

const QUESTION = Buffer.alloc(1)
/** What is not answered within so many beats never is. */
const PATIENT_BEATS = 2
const IDLE_BEATS = VERSION_IDLE_MS / NEWS_HEARTBEAT_MS
const RETRY_BEATS = NEWS_RETRY_MAX_MS / NEWS_HEARTBEAT_MS
const RETRY_MAX_BEATS = 64 * RETRY_BEATS

/**
 * Asks a thread of the node that serves for the version of all that syncs show there. One question is on its way at a time; who asks meanwhile
 * waits for the next one.
 */
export class VersionLine {
  readonly #here: string | undefined
  readonly #call: (call: VersionCall) => void
  #known: Positioned | undefined
  #socket: Duplex | undefined
  /** By which the thread is known when it connects. */
  #word: string | undefined
  /** So many beats must pass before it is called again. */
  #rest = 0
  #nextRest = RETRY_BEATS
  #asked: readonly Resolve[] = []
  #next: Resolve[] = []
  #isScheduled = false
  /** Since the last question or answer. */
  #beats = 0
  #answer: Buffer = Buffer.alloc(0)

  /**
   * @param here where the thread may connect to; undefined if there is none, or nowhere
   * @param call has the thread connect
   */
  constructor(here: string | undefined, call: (call: VersionCall) => void) {
    this.#here = here
    this.#call = call
  }

  /**
   * Where the streams stand at some moment from now on. As long as the version is the same, that is where they stood when the node itself was asked.
   *
   * @param askNode asks the node itself
   */
  async position(askNode: () => Promise<Positioned | undefined>): Promise<string | undefined> {
    const version = await this.#ask()
    if (version !== undefined && version === this.#known?.version) return this.#known.position
    this.#known = await askNode()
    return this.#known?.position
  }

  /** The version at some moment from now on; undefined if it cannot be known so. */
  #ask(): Promise<number | undefined> {
    if (this.#socket === undefined) {
      this.#callAgain()
      return Promise.resolve(undefined)
    }
    return new Promise((resolve) => {
      this.#next.push(resolve)
      if (this.#isScheduled || this.#asked.length > 0) return
      this.#isScheduled = true
      // With all that this tick still brings.
      setImmediate(this.#send)
    })
  }

  /** The thread has connected. @returns false if it was not called by this word */
  enter(socket: Duplex, word: string): boolean {
    if (word !== this.#word) return false
    this.#word = undefined
    this.#nextRest = RETRY_BEATS
    this.#socket = socket
    this.#beats = 0
    socket.on('error', () => {})
    socket.once('close', () => this.#end(socket))
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${VERSION_PROTOCOL}\r\n\r\n`)
    return true
  }

  /** To be called every `NEWS_HEARTBEAT_MS`. */
  beat(): void {
    this.#beats += 1
    this.#rest -= 1
    if (this.#beats > (this.#asked.length > 0 ? PATIENT_BEATS : IDLE_BEATS)) this.close()
  }

  close(): void {
    this.#word = undefined
    const socket = this.#socket
    if (socket === undefined) return
    socket.destroy()
    this.#end(socket)
  }

  #callAgain(): void {
    if (this.#here === undefined || this.#rest > 0) return
    this.#rest = this.#nextRest
    // It may never get here.
    this.#nextRest = Math.min(2 * this.#rest, RETRY_MAX_BEATS)
    this.#word = randomBytes(16).toString('hex')
    this.#call({ address: this.#here, word: this.#word })
  }

  readonly #send = (): void => {
    this.#isScheduled = false
    this.#asked = this.#next
    this.#next = []
    this.#beats = 0
    if (this.#asked.length > 0) this.#socket?.write(QUESTION)
  }

  #read(chunk: Buffer): void {
    this.#answer = this.#answer.length === 0 ? chunk : Buffer.concat([this.#answer, chunk])
    if (this.#answer.length < VERSION_BYTES) return
    const version = this.#answer.readDoubleLE(0)
    this.#answer = this.#answer.subarray(VERSION_BYTES)
    const asked = this.#asked
    // Nobody asked.
    if (asked.length === 0) this.close()
    this.#send()
    for (const resolve of asked) resolve(version === UNKNOWN_VERSION ? undefined : version)
  }

  #end(socket: Duplex): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    const waiting = [...this.#asked, ...this.#next]
    this.#asked = []
    this.#next = []
    this.#answer = Buffer.alloc(0)
    for (const resolve of waiting) resolve(undefined)
  }
}
