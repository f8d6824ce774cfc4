import { open, readFile, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** The text of a file that holds a secret. Refuses one that other users can read. */
export async function readSecret(path: string): Promise<string> {
  const { mode } = await stat(path)
  if ((mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by other users; allow it to its owner only: chmod 600 ${path}`)
  }
  return readFile(path, 'utf8')
}

/** Writes and syncs a temporary file before renaming it, so that a kill or a power cut leaves either the old file or the complete new one. */
export async function writeSecret(path: string, content: string): Promise<void> {
  const draft = `${path}.new`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.chmod(0o600)
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  // What the key has signed since must not outlive it.
  const folder = await open(dirname(path), 'r')
  await folder.sync().finally(() => folder.close())
}
