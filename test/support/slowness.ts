import { availableParallelism, loadavg } from 'node:os'
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

/**
 * CPU time of some work in milliseconds, as where the limits were set: what others do on this machine meanwhile does not count. The best
 * of three rounds.
 */
export function cpuMs(work: () => void): number {
  const rounds = [0, 1, 2].map(() => {
    const begun = process.cpuUsage()
    work()
    return passed(begun)
  })
  return Math.min(...rounds) / slowness()
}

/** The same of work that this process does and waits for, once. */
export async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const begun = process.cpuUsage()
  await work()
  return passed(begun) / slowness()
}

function passed(begun: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1_000
}

/** Other processes of a busy machine hold a try up, but hardly all of so many. */
const MOST_TRIES = 25

/** How many processes have wanted each core in the last minute, never less than one: how many times longer work takes that is shared by several. */
const crowding = (): number => Math.max(1, loadavg()[0]! / availableParallelism())

/** A limit of milliseconds for work that this process shares with a database and a browser, as long as this machine now makes it. */
export const limitNow = (limitMs: number): number => limitMs * slowness() * crowding()

/** Milliseconds of the first try that is within a limit, or of the fastest of many, if none is. */
export async function fastestMs(limitMs: number, work: () => Promise<number>): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < MOST_TRIES && fastest >= limitMs; turn += 1) fastest = Math.min(fastest, await work())
  return fastest
}
