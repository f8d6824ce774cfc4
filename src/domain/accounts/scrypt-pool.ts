import { scryptSync } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { ProtocolError } from '../../core/errors.ts'
import { FEWEST_WAITING_HASHES, MAX_HASH_WAIT_MS, MAX_WAITING_HASHES } from '../limits/passwords.ts'
import type { ScryptCost } from './phc.ts'

interface Job extends ScryptCost {
  readonly password: string
  readonly salt: Buffer
  readonly resolve: (digest: Buffer) => void
  readonly reject: (error: Error) => void
}

/** Derives scrypt keys in threads of its own, so that they block neither the event loop nor the file-system threads. */
export interface ScryptPool {
  /** Call this before a login does other work. @throws ProtocolError 429 `M_LIMIT_EXCEEDED` if too many hashes wait already */
  mustHaveRoom(): void
  /** @throws ProtocolError 429 `M_LIMIT_EXCEEDED` if too many hashes wait already */
  derive(password: string, salt: Buffer, cost: ScryptCost): Promise<Buffer>
  close(): Promise<void>
}

/** With two cores or more, one is left to everything else. */
const THREADS = Math.max(1, Math.min(2, availableParallelism() - 1))
const DIGEST_BYTES = 32
/** A thread that was idle for this long ends, so that an idle server uses no memory for passwords. */
const IDLE_MS = 30_000

/** A hash of so little memory takes microseconds: a thousandth of what it takes to start a thread. Only tests have such. */
const WITHOUT_THREAD_BYTES = 64 * 1024

/** What a machine hashes in a millisecond, until it is known how long it takes here. */
const BYTES_PER_MS = 300_000
/** How much the newest hash counts in the time that one takes. */
const NEWEST_COUNTS = 0.1
const SOONEST_RETRY_MS = 1_000

/** The program is text and not a file, so that it is the same from source, from the build and in one bundled file. */
const PROGRAM = `
const { parentPort } = require('node:worker_threads')
const { scryptSync } = require('node:crypto')
const { constants, platform, setPriority } = require('node:os')
// On Linux this sets the priority of this thread alone, so that only logins wait a little longer. Elsewhere it would apply to the whole
// process.
if (platform() === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
parentPort.on('message', ({ password, salt, N, r, p, length }) => {
  try {
    const begun = performance.now()
    const digest = scryptSync(password, salt, length, { N, r, p, maxmem: 128 * N * r + 128 * r * p + 1048576 })
    parentPort.postMessage({ digest, ms: performance.now() - begun })
  } catch (error) {
    parentPort.postMessage({ error: String(error) })
  }
})
`

class Thread {
  readonly #onFree: (thread: Thread, ms: number) => void
  readonly #onEnd: (thread: Thread) => void
  readonly #worker: Worker
  #job: Job | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(onFree: (thread: Thread, ms: number) => void, onEnd: (thread: Thread) => void) {
    this.#onFree = onFree
    this.#onEnd = onEnd
    this.#worker = new Worker(PROGRAM, { eval: true, execArgv: [] })
    this.#worker.on('message', ({ digest, ms = 0, error }: { digest?: Uint8Array; ms?: number; error?: string }) => {
      const job = this.#job
      this.#job = undefined
      if (digest === undefined) job?.reject(new Error(`scrypt failed: ${error}`))
      else job?.resolve(Buffer.from(digest))
      this.#rest()
      this.#onFree(this, ms)
    })
    this.#worker.on('error', (error) => this.#end(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#end(new Error('the password thread ended')))
  }

  get isFree(): boolean {
    return this.#job === undefined
  }

  run(job: Job): void {
    clearTimeout(this.#idle)
    this.#job = job
    this.#worker.ref()
    const { password, salt, log2Cost, blockSize, parallelism } = job
    this.#worker.postMessage({ password, salt, N: 2 ** log2Cost, r: blockSize, p: parallelism, length: DIGEST_BYTES })
  }

  async stop(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker.terminate()
  }

  #rest(): void {
    this.#worker.unref()
    this.#idle = setTimeout(() => void this.stop(), IDLE_MS).unref()
  }

  #end(error: Error): void {
    this.#job?.reject(error)
    this.#job = undefined
    this.#onEnd(this)
  }
}

const bytesOf = ({ log2Cost, blockSize, parallelism }: ScryptCost): number =>
  128 * 2 ** log2Cost * blockSize * parallelism

const deriveHere = (password: string, salt: Buffer, { log2Cost, blockSize, parallelism }: ScryptCost): Buffer =>
  scryptSync(password, salt, DIGEST_BYTES, { N: 2 ** log2Cost, r: blockSize, p: parallelism })

/** @param usual what most hashes cost */
export function createScryptPool(usual: ScryptCost): ScryptPool {
  const waiting: Job[] = []
  const threads = new Set<Thread>()
  let isClosed = false
  /** How long one hash takes, as it was of late. */
  let hashMs = bytesOf(usual) / BYTES_PER_MS

  function freed(_thread: Thread, ms: number): void {
    if (ms > 0) hashMs += (ms - hashMs) * NEWEST_COUNTS
    assign()
  }

  function assign(): void {
    while (waiting.length > 0) {
      let thread = [...threads].find(({ isFree }) => isFree)
      if (thread === undefined && threads.size < THREADS) {
        thread = new Thread(freed, (ended) => {
          threads.delete(ended)
          if (!isClosed) assign()
        })
        threads.add(thread)
      }
      if (thread === undefined) return
      thread.run(waiting.shift() as Job)
    }
  }

  function mustHaveRoom(): void {
    const inTime = Math.max(FEWEST_WAITING_HASHES, Math.floor((MAX_HASH_WAIT_MS * THREADS) / hashMs))
    if (waiting.length < Math.min(inTime, MAX_WAITING_HASHES)) return
    const error = 'Too many logins at once. Try again in a few seconds.'
    const halfMs = Math.ceil((waiting.length * hashMs) / THREADS / 2)
    throw new ProtocolError('M_LIMIT_EXCEEDED', error, {
      extra: { retry_after_ms: Math.max(SOONEST_RETRY_MS, halfMs) },
    })
  }

  return {
    mustHaveRoom,
    derive: (password, salt, cost) =>
      new Promise((resolve, reject) => {
        if (bytesOf(cost) <= WITHOUT_THREAD_BYTES) return resolve(deriveHere(password, salt, cost))
        mustHaveRoom()
        waiting.push({ password, salt, ...cost, resolve, reject })
        assign()
      }),
    async close() {
      isClosed = true
      for (const { reject } of waiting.splice(0)) reject(new Error('the server stops'))
      await Promise.all([...threads].map((thread) => thread.stop()))
    },
  }
}
