import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A file system of its own, in memory, that a test can fill up. */
export interface SmallDisk {
  readonly path: string
  freeBytes(): number
  /** Fills it with a file, but for some bytes. Others may fill what is left, so it may be called again. */
  fill(leavingBytes?: number): void
  /** Deletes that file. */
  free(): void
  unmount(): void
}

const CHUNK = Buffer.alloc(64 * 1024, 1)

/** Only root may mount one, and not in every container. */
export function canMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  try {
    mountSmallDisk(1024 * 1024).unmount()
    return true
  } catch {
    return false
  }
}

export function mountSmallDisk(bytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'hearth-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0755`, 'tmpfs', path], { stdio: 'ignore' })
  } catch (error) {
    rmdirSync(path)
    throw error
  }
  const ballast = join(path, 'ballast')
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  }
  return {
    path,
    freeBytes,
    fill(leavingBytes = 0) {
      const file = openSync(ballast, 'a')
      try {
        for (let rest = freeBytes() - leavingBytes; rest > 0; rest = freeBytes() - leavingBytes) {
          writeSync(file, CHUNK, 0, Math.min(rest, CHUNK.length))
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast, { force: true }),
    unmount() {
      execFileSync('umount', ['-l', path], { stdio: 'ignore' })
      rmdirSync(path)
    },
  }
}
