import { signingKeyFromSeed, verifySignature } from '../../src/core/signing/key.ts'

/** What a core takes for one signature where the limits in milliseconds were set. */
const USUAL_MS = 0.045

/** How many times slower this machine is just now, never less than once: what limits of a few milliseconds are multiplied with. */
export function slowness(): number {
  const key = signingKeyFromSeed('ed25519:slowness', Buffer.alloc(32, 'slowness'))
  const signature = key.sign('a text')
  const tookMs = Array.from({ length: 200 }, () => {
    const begun = performance.now()
    verifySignature(key.publicKey, 'a text', signature)
    return performance.now() - begun
  })
  return Math.max(1, tookMs.toSorted((a, b) => a - b)[tookMs.length / 2]! / USUAL_MS)
}
