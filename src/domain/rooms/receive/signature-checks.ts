import { Worker } from 'node:worker_threads'
import { decodeBase64 } from '../../../core/base64.ts'
import type { ClaimedSignature } from '../../../core/event/signers.ts'
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES, sodiumFile } from '../../../core/signing/ed25519.ts'
import { verifySignature } from '../../../core/signing/key.ts'

/** Checks signatures: a few at once on this thread, many in a worker thread, so that the rest of the server goes on. */
export interface SignatureChecks {
  /** Whether each signature over its text is valid for its key. */
  areGood(claimed: readonly SignedText[]): Promise<boolean[]>
  close(): Promise<void>
}

export interface SignedText extends ClaimedSignature {
  readonly text: string
}

/** The claims of one call. */
interface Check {
  readonly claimed: readonly SignedText[]
  readonly answer: (areGood: boolean[]) => void
}

/** From this many on, a worker thread pays off. */
const WORTH_A_THREAD = 24
/** A thread that is idle for this long is ended, so that an idle server uses no memory for it. */
const IDLE_MS = 30_000

/** The program is text and not a file, so that it is the same from source, from the build and in one bundled file. */
const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { createPublicKey, verify } = require('node:crypto')
  const sodium = workerData && require(workerData)
  const objects = new Map()
  function objectOf(key) {
    const x = Buffer.from(key).toString('base64url')
    let object = objects.get(x)
    if (object === undefined) {
      object = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
      if (objects.size >= 5000) objects.clear()
      objects.set(x, object)
    }
    return object
  }
  function isGood(text, key, signature) {
    const bytes = Buffer.from(text)
    return sodium ? sodium.crypto_sign_verify_detached(signature, bytes, key) : verify(null, bytes, objectOf(key), signature)
  }
  parentPort.on('message', ({ texts, keys, signatures }) => {
    const good = texts.map((text, n) => {
      try {
        return text !== null && isGood(text, Buffer.from(keys.buffer, keys.byteOffset + n * ${PUBLIC_KEY_BYTES}, ${PUBLIC_KEY_BYTES}), Buffer.from(signatures.buffer, signatures.byteOffset + n * ${SIGNATURE_BYTES}, ${SIGNATURE_BYTES}))
      } catch {
        return false
      }
    })
    parentPort.postMessage(good)
  })
`

export function createSignatureChecks(): SignatureChecks {
  let queue: Check[] = []
  let thread: Worker | undefined
  /** The calls that the thread works on, in order. */
  let given: (readonly Check[])[] = []
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: sodiumFile() })
    started.on('message', (good: boolean[]) => {
      let from = 0
      for (const { claimed, answer } of given.shift()!) {
        answer(good.slice(from, from + claimed.length))
        from += claimed.length
      }
      if (given.length > 0) return
      started.unref()
      idle = setTimeout(() => void started.terminate(), IDLE_MS).unref()
    })
    // Without the thread, checks go on here.
    started.on('error', () => started.terminate())
    started.on('exit', () => end(started))
    return started
  }

  function end(ended: Worker): void {
    if (thread !== ended) return
    const left = given
    thread = undefined
    given = []
    for (const checks of left) checkHere(checks)
  }

  function checkThere(checks: readonly Check[]): void {
    clearTimeout(idle)
    thread ??= start()
    thread.ref()
    given.push(checks)
    thread.postMessage(toThread(checks.flatMap(({ claimed }) => claimed)))
  }

  function flush(): void {
    const checks = queue
    queue = []
    const size = checks.reduce((sum, { claimed }) => sum + claimed.length, 0)
    if (size < WORTH_A_THREAD) checkHere(checks)
    else checkThere(checks)
  }

  return {
    areGood(claimed) {
      if (claimed.length === 0) return Promise.resolve([])
      return new Promise((answer) => {
        if (queue.length === 0) setImmediate(flush)
        queue.push({ claimed, answer })
      })
    },
    async close() {
      clearTimeout(idle)
      await thread?.terminate()
    },
  }
}

function checkHere(checks: readonly Check[]): void {
  for (const { claimed, answer } of checks)
    answer(claimed.map(({ publicKey, signature, text }) => verifySignature(publicKey, text, signature)))
}

/** What goes to the thread: the texts, keys and signatures by place. A text is null where the key or the signature is malformed. */
interface ForThread {
  readonly texts: (string | null)[]
  readonly keys: Buffer
  readonly signatures: Buffer
}

function toThread(claimed: readonly SignedText[]): ForThread {
  const texts: (string | null)[] = []
  const keys = Buffer.alloc(claimed.length * PUBLIC_KEY_BYTES)
  const signatures = Buffer.alloc(claimed.length * SIGNATURE_BYTES)
  const decoded = new Map<string, Buffer | undefined>()
  for (const [n, { publicKey, signature, text }] of claimed.entries()) {
    if (!decoded.has(publicKey)) decoded.set(publicKey, decodeBase64(publicKey))
    const key = decoded.get(publicKey)
    const bytes = decodeBase64(signature)
    const isReadable = key?.length === PUBLIC_KEY_BYTES && bytes?.length === SIGNATURE_BYTES
    texts.push(isReadable ? text : null)
    if (!isReadable) continue
    keys.set(key, n * PUBLIC_KEY_BYTES)
    signatures.set(bytes, n * SIGNATURE_BYTES)
  }
  return { texts, keys, signatures }
}
