import { createRequire } from 'node:module'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const requireHere = createRequire(import.meta.url)

/**
 * Runs a full garbage collection and returns free pages to the system. The engine collects only when it needs memory, which an idle server
 * does not, and glibc keeps freed pages below the last one in use: without this, a process stays as large as it once was.
 */
export function giveBackMemory(): void {
  collect()
  trim()
}

/** Returns free pages to the system, without a collection. */
export function giveBackPages(): void {
  trim()
}

/** Collects the newest objects alone, which takes a few milliseconds. */
export function collectNewObjects(): void {
  engineCollect({ type: 'minor' })
}

/** With `--expose-gc`, the engine offers its own collection to contexts that are created afterwards. */
function engineCollector(): (options?: { type: 'minor' }) => void {
  setFlagsFromString('--expose-gc')
  const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return collect
}

const engineCollect = engineCollector()
/** The first call finds the function and replaces this one. */
let trim = (): void => {
  trim = trimmer()
}

/** To move all objects at once, the engine takes as much memory again as they have. More than this would be the most that the server ever has. */
const MOST_MOVED_BYTES = 48 * 1024 * 1024

/** A full collection, which moves a small heap together. */
function collect(): void {
  engineCollect()
  if (getHeapStatistics().used_heap_size > MOST_MOVED_BYTES) return
  setFlagsFromString('--compact-on-every-full-gc')
  engineCollect()
  setFlagsFromString('--no-compact-on-every-full-gc')
}

/** `malloc_trim` of glibc; does nothing with other C libraries, which return memory by themselves. */
function trimmer(): () => void {
  try {
    const { DataType, load, open }: typeof import('ffi-rs') = requireHere('ffi-rs')
    open({ library: 'c', path: 'libc.so.6' })
    const call = {
      library: 'c',
      funcName: 'malloc_trim',
      retType: DataType.I32,
      paramsType: [DataType.U64],
      paramsValue: [0],
    }
    load(call)
    return () => load(call)
  } catch {
    return () => undefined
  }
}
