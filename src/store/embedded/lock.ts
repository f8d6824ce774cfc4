import { unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'

/**
 * Held while one server owns the cluster: a listening unix socket, which the kernel closes with its process however that ends.
 * A race of two starts over a stale socket is decided by Postgres's own lock on its data directory.
 */
export async function takeLock(runDirectory: string): Promise<{ release(): Promise<void> }> {
  const path = lockPath(runDirectory)
  if (await isLocked(runDirectory))
    throw new Error(`another Hearth is running on this data directory (it holds ${path})`)
  await unlink(path).catch(() => undefined)
  const server = await listen(path)
  server.unref()
  return { release: () => new Promise((resolve) => server.close(() => resolve())) }
}

/** Whether a running server owns the cluster. */
export function isLocked(runDirectory: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(lockPath(runDirectory))
    const answer = (value: boolean) => {
      socket.destroy()
      resolve(value)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}

function lockPath(runDirectory: string): string {
  return join(runDirectory, 'owner')
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}
