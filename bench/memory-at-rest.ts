import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '../test/support/wait.ts'
import type { MemoryAtRest } from './drivers/memory-on-signal.ts'
import type { Target, TargetWish } from './target.ts'

/** Reads the memory of our own server after it has collected its garbage. */
export interface MemoryProbe {
  /** How the server is to be started. */
  readonly wish: TargetWish
  /** Undefined for a server that is not ours. */
  read(target: Target): Promise<MemoryAtRest | undefined>
  close(): void
}

export function openMemoryProbe(): MemoryProbe {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-memory-'))
  const file = join(folder, 'memory.json')
  const preload = fileURLToPath(new URL('./drivers/memory-on-signal.js', import.meta.url))
  return {
    wish: { env: { BENCH_MEMORY_FILE: file }, nodeArgs: ['--expose-gc', '--import', preload] },
    async read({ own }) {
      if (own === undefined) return undefined
      rmSync(file, { force: true })
      process.kill(own.pid(), 'SIGUSR2')
      let memory: MemoryAtRest | undefined
      await waitUntil('the memory of the server', () => {
        memory = existsSync(file) ? parsed(readFileSync(file, 'utf8')) : undefined
        return memory !== undefined
      })
      return memory
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Undefined for a file that is only half written. */
function parsed(text: string): MemoryAtRest | undefined {
  try {
    return JSON.parse(text) as MemoryAtRest
  } catch {
    return undefined
  }
}
