import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join, resolve } from 'node:path'

/**
 * What a power loss would leave of a directory: the content of a file as it was synced last, under the names that its directory had when that
 * was synced last. It stands in front of `node:fs/promises` in this process, for all who use it, until it is closed.
 */
export interface CrashDisk {
  /** Called after each change of a name: the moments at which a power loss may find the disk. */
  onChange(listener: (change: { readonly kind: 'rename' | 'remove'; readonly path: string }) => void): void
  /** Writes what a power loss at this moment leaves into an empty directory. */
  leave(into: string): void
  close(): void
}

const inode = (path: string): number => statSync(path).ino

/** @param directory is watched from now on; what is in it counts as lasting */
export function watchDisk(directory: string): CrashDisk {
  const root = resolve(directory)
  const contents = new Map<number, Buffer>()
  const names = new Map<number, Map<string, number>>()
  const real = { open: files.open, rename: files.rename, rm: files.rm }
  let heard: Parameters<CrashDisk['onChange']>[0] = () => {}
  const isWatched = (path: unknown): boolean => resolve(String(path)).startsWith(root)

  function synced(path: string): void {
    if (!isWatched(path)) return
    const found = statSync(path)
    if (!found.isDirectory()) contents.set(found.ino, readFileSync(path))
    else names.set(found.ino, new Map(readdirSync(path).map((name) => [name, inode(join(path, name))])))
  }

  function write(folder: number, into: string): void {
    mkdirSync(into, { recursive: true })
    for (const [name, node] of names.get(folder) ?? []) {
      const content = contents.get(node)
      if (content !== undefined) writeFileSync(join(into, name), content)
      else write(node, join(into, name))
    }
  }

  const use = (changed: Partial<typeof real>) => {
    Object.assign(files, changed)
    syncBuiltinESMExports()
  }
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true }))
    synced(join(entry.parentPath, entry.name))
  synced(root)
  use({
    async open(path, ...rest) {
      const file = await real.open(path, ...rest)
      for (const kind of ['sync', 'datasync'] as const) {
        const sync = file[kind].bind(file)
        file[kind] = async () => {
          await sync()
          synced(String(path))
        }
      }
      return file
    },
    async rename(from, to) {
      await real.rename(from, to)
      if (isWatched(to)) heard({ kind: 'rename', path: resolve(String(to)) })
    },
    async rm(path, options) {
      await real.rm(path, options)
      if (isWatched(path)) heard({ kind: 'remove', path: resolve(String(path)) })
    },
  })

  return {
    onChange(listener) {
      heard = listener
    },
    leave: (into) => write(inode(root), into),
    close: () => use(real),
  }
}

/** Puts a file where a power loss may have left it already: a disk may keep a new name before anybody syncs it. */
export function keepEarly(path: string, root: string, into: string): void {
  const target = join(into, resolve(path).slice(resolve(root).length))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, readFileSync(path))
}
