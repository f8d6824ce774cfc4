import { setTimeout as pause } from 'node:timers/promises'

/** Asks again and again until the answer is neither undefined nor false; says what it waited for when time runs out. */
export async function waitUntil<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { timeoutMs = 45_000, everyMs = 20 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`)
    await pause(everyMs)
  }
}
