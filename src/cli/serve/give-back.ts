import { createRequire } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const requireHere = createRequire(import.meta.url)

/**
 * Collects what nothing holds any more and hands its pages to the system. The engine collects by itself when it needs memory, which an
 * idle server never does, and glibc keeps freed pages below the last one in use: without this a process stays as large as it once was.
 */
export function giveBackMemory(): void {
  collect()
  trim()
}

const collect = collector()
/** The first time it looks for the function, and calls it. */
let trim = (): void => {
  trim = trimmer()
}

/** A full collection that compacts. The engine shows its own to contexts that are made while it is asked to. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const collectAll: () => void = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  return () => {
    setFlagsFromString('--compact-on-every-full-gc')
    collectAll()
    setFlagsFromString('--no-compact-on-every-full-gc')
  }
}

/** `malloc_trim` of glibc; nothing where there is another library, which gives back by itself. */
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
