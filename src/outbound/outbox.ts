import { randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A directory for messages without a configured gateway, one file each. */
export interface Outbox {
  put(kind: 'eml' | 'txt', content: Buffer | string): Promise<void>
}

/** Calls `arrived` with each complete file's path. Creates the directory with the first message, for its owner only. */
export function createOutbox(directory: string, now: () => number, arrived: (path: string) => void): Outbox {
  return {
    async put(kind, content) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const time = new Date(now()).toISOString().replaceAll(':', '-')
      const path = join(directory, `${time}-${randomBytes(4).toString('hex')}.${kind}`)
      await writeFile(`${path}.part`, content, { mode: 0o600 })
      await rename(`${path}.part`, path)
      arrived(path)
    },
  }
}
