import { Worker } from 'node:worker_threads'
import { decodeBase64 } from '../../core/base64.ts'
import type { ClaimedSignature } from '../../core/event/signers.ts'
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES, sodiumFile } from '../../core/signing/ed25519.ts'
import { verifySignature } from '../../core/signing/key.ts'

/** Checks signatures: few at once here, many at once in a thread of their own, while the rest of the server goes on. */
export interface SignatureChecks {
  /** Whether a signature is one by the holder of the key over a text. */
  isGood(claimed: ClaimedSignature, text: string): Promise<boolean>
  close(): Promise<void>
}

interface Check extends ClaimedSignature {
  readonly text: string
  readonly resolve: (isGood: boolean) => void
}

/** So many are worth the way to another thread. */
const WORTH_A_THREAD = 24
/** A thread with nothing to do for this long is ended: an idle server keeps no memory for it. */
const IDLE_MS = 30_000

/** Text, not a file, so that it is the same program from source, from the build and in one bundled file. */
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
        return isGood(text, Buffer.from(keys.buffer, keys.byteOffset + n * ${PUBLIC_KEY_BYTES}, ${PUBLIC_KEY_BYTES}), Buffer.from(signatures.buffer, signatures.byteOffset + n * ${SIGNATURE_BYTES}, ${SIGNATURE_BYTES}))
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
  /** What the thread has been given, in order. */
  let given: (readonly Check[])[] = []
  let idle: NodeJS.Timeout | undefined

  function start(): Worker {
    const started = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: sodiumFile() })
    started.on('message', (good: boolean[]) => {
      for (const [index, check] of given.shift()!.entries()) check.resolve(good[index]!)
      if (given.length > 0) return
      started.unref()
      idle = setTimeout(() => void started.terminate(), IDLE_MS).unref()
    })
    // Without it checks go on here.
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
    const readable = checks.flatMap((check) => {
      const key = decodeBase64(check.publicKey)
      const signature = decodeBase64(check.signature)
      if (key?.length === PUBLIC_KEY_BYTES && signature?.length === SIGNATURE_BYTES) return [{ check, key, signature }]
      check.resolve(false)
      return []
    })
    if (readable.length === 0) return
    clearTimeout(idle)
    thread ??= start()
    thread.ref()
    given.push(readable.map(({ check }) => check))
    thread.postMessage({
      texts: readable.map(({ check }) => check.text),
      keys: Buffer.concat(readable.map(({ key }) => key)),
      signatures: Buffer.concat(readable.map(({ signature }) => signature)),
    })
  }

  function flush(): void {
    const checks = queue
    queue = []
    if (checks.length < WORTH_A_THREAD) checkHere(checks)
    else checkThere(checks)
  }

  return {
    isGood(claimed, text) {
      return new Promise((resolve) => {
        if (queue.length === 0) setImmediate(flush)
        queue.push({ ...claimed, text, resolve })
      })
    },
    async close() {
      clearTimeout(idle)
      await thread?.terminate()
    },
  }
}

function checkHere(checks: readonly Check[]): void {
  for (const { publicKey, signature, text, resolve } of checks) resolve(verifySignature(publicKey, text, signature))
}
