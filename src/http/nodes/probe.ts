import { request } from 'node:http'
import { nodeProof } from '../../core/signing/node-proof.ts'
import { NODE_PROOF, NOT_SERVING, passedOn } from './node-listener.ts'
import { placeOf } from './place-of.ts'

/** Finds out whether the node that serves takes requests, at no risk to any. */
export interface Probe {
  /** Whether it is reached, and ready. */
  isReady(): Promise<boolean>
  /** A node did not take a request: it may be about to end, and to lose what it is sent. */
  doubt(address: string): void
  /** Whether it may be sent what cannot be sent again: always, unless there is a doubt and it does not take requests now. */
  isSure(address: string): Promise<boolean>
}

export interface ProbeParts {
  readonly secret: string
  readonly now: () => number
  /** Where the node that serves listens for others, `host:port`; undefined while none does. */
  readonly target: () => string | undefined
}

const PROBED = '/health/ready'
/** A node that has much to do answers late. */
const PATIENCE_MS = 4_000

/** What a node says; `serving`: it takes requests, but is not ready. */
type Word = 'ready' | 'serving' | 'none'

export function createProbe(parts: ProbeParts): Probe {
  let doubtful: string | undefined
  let asking: Promise<Word> | undefined
  return {
    isReady: async () => (await askNode(parts)) === 'ready',
    doubt(address) {
      doubtful = address
    },
    async isSure(address) {
      if (address !== doubtful) return true
      // However many requests wait.
      asking ??= askNode(parts).finally(() => {
        asking = undefined
      })
      const isServing = (await asking) !== 'none'
      if (isServing) doubtful = undefined
      return isServing && parts.target() === address
    },
  }
}

function askNode({ secret, now, target }: ProbeParts): Promise<Word> {
  const address = target()
  if (address === undefined) return Promise.resolve('none')
  const proof = nodeProof(secret, passedOn({ method: 'GET', url: PROBED, headers: {} }), now())
  return new Promise((resolve) => {
    const place = placeOf(address)
    const asked = request({ ...place, path: PROBED, headers: { [NODE_PROOF]: proof }, timeout: PATIENCE_MS })
    asked.once('timeout', () => asked.destroy())
    asked.once('error', () => resolve('none'))
    asked.once('response', (incoming) => {
      incoming.resume()
      if (incoming.headers[NOT_SERVING] !== undefined) resolve('none')
      else resolve(incoming.statusCode === 200 ? 'ready' : 'serving')
    })
    asked.end()
  })
}
