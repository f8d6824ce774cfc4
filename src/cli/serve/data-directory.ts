import { mkdir, stat } from 'node:fs/promises'

/**
 * Makes the data directory at the first start. If the server runs as root, the embedded Postgres runs as another user, who must be able to
 * enter this directory; the files inside are closed to others one by one.
 */
export async function ensureDataDirectory(path: string, uid: number): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: uid === 0 ? 0o711 : 0o700 })
  } catch (error) {
    throw new Error(`the data directory ${path} cannot be made: ${(error as Error).message}`)
  }
  const found = await stat(path)
  if (!found.isDirectory()) throw new Error(`${path} is not a directory`)
  if (uid !== 0 && found.uid !== uid) {
    throw new Error(
      `the data directory ${path} belongs to user id ${found.uid}, not to the user of this process (${uid})`,
    )
  }
}
