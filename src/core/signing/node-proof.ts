import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a node vouches for when it passes a request on: the request, and whose it is. */
export interface PassedOn {
  readonly method: string
  readonly url: string
  /** The addresses that the request came from. */
  readonly forwardedFor: string
  readonly authorization: string
}

/** A proof is accepted so many milliseconds before and after its time. */
const PROOF_MS = 120_000

/** The proof for a request from node to node: its time in milliseconds, and a MAC by the secret of the cluster. */
export function nodeProof(secret: string, request: PassedOn, now: number): string {
  return `${now} ${macOf(secret, request, `${now}`).toString('base64url')}`
}

/** Whether a proof was made with this secret, for this request, lately. */
export function isNodeProof(secret: string, request: PassedOn, proof: string | undefined, now: number): boolean {
  const [, time, mac] = /^(\d{1,15}) ([\w-]{43})$/.exec(proof ?? '') ?? []
  if (time === undefined || mac === undefined || Math.abs(now - Number(time)) > PROOF_MS) return false
  return timingSafeEqual(Buffer.from(mac, 'base64url'), macOf(secret, request, time))
}

function macOf(secret: string, { method, url, forwardedFor, authorization }: PassedOn, time: string): Buffer {
  const parts = ['hearth node', time, method, url, forwardedFor, authorization]
  return createHmac('sha256', secret).update(JSON.stringify(parts)).digest()
}
