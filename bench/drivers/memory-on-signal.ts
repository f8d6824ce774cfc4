import { writeFileSync } from 'node:fs'

/**
 * Loaded into a server before its own program, with `--expose-gc`. At the signal, the server collects its garbage and writes down what is
 * left, because what waits to be collected would hide what each client holds.
 */
export interface MemoryAtRest {
  readonly heapMb: number
  /** Outside the heap of JavaScript: buffers. */
  readonly externalMb: number
  readonly residentMb: number
}

/** Objects that only finalizers or weak references held go with the second collection. */
const COLLECTIONS = 2

const file = process.env.BENCH_MEMORY_FILE
if (file !== undefined) {
  process.on('SIGUSR2', () => {
    for (let round = 0; round < COLLECTIONS; round += 1) globalThis.gc?.()
    const { heapUsed, external, rss } = process.memoryUsage()
    const megabytes = (bytes: number) => bytes / 1024 ** 2
    const memory: MemoryAtRest = {
      heapMb: megabytes(heapUsed),
      externalMb: megabytes(external),
      residentMb: megabytes(rss),
    }
    writeFileSync(file, JSON.stringify(memory))
  })
}
